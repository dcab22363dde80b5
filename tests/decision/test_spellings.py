"""What may become of a URL between the verdict and the site."""

import pytest

from scrapy_rep.decision.spellings import without_dot_segments
from scrapy_rep.utils.requests import stripped_url


@pytest.mark.rfc3986("5.2.4")
@pytest.mark.parametrize(
    ("target", "without"),
    [
        ("/", "/"),
        ("/a/b?c", "/a/b?c"),
        ("/a/../b", "/b"),
        ("/a/./b", "/a/b"),
        ("/./a", "/a"),
        ("/../a", "/a"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/.", "/a/"),
        ("/a/../../../b/", "/b/"),
        ("/a/..b/.c/...", "/a/..b/.c/..."),
        ("/a//../b", "/a/b"),
        ("/a?b/../c", "/a?b/../c"),
        ("/a/..?b", "/?b"),
    ],
)
def test_dot_segments(target, without):
    assert without_dot_segments(target) == without


def test_blanks_as_url_parsers_read_them():
    assert stripped_url(" \t\x00ht\ntp://a/p\tq r\r\n ") == "http://a/pq r"
