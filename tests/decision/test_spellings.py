"""What may become of a URL between the verdict and the site."""

import pytest

from scrapy_rep.decision.spellings import other_spellings, verdict_of_rules, without_dot_segments
from scrapy_rep.protocol import Reason, RobotsTxt, target_of
from scrapy_rep.utils.requests import stripped_url


@pytest.mark.rfc3986("5.2.4")
@pytest.mark.parametrize(
    ("target", "without"),
    [
        ("/", "/"),
        ("/a/b", "/a/b"),
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
    ],
)
def test_dot_segments(target, without):
    assert without_dot_segments(target) == without


def test_blanks_as_url_parsers_read_them():
    assert stripped_url(" \t\x00ht\ntp://a/p\tq r\r\n ") == "http://a/pq r"


def test_a_url_of_very_many_spellings_is_disallowed():
    rules = RobotsTxt.parse(b"User-agent: *\nDisallow: /b").rules_for("mybot")
    url = "http://h//./%2e%2e\\%zz/./\t%2E%2e;a ?/../? \t \t?"
    assert len(other_spellings(url, target_of(url))) > 32
    assert verdict_of_rules(rules, url).reason is Reason.TOO_COSTLY
