"""What may become of a URL between the verdict and the site."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from scrapy_rep.decision.spellings import Spellings, stripped_url, without_dot_segments
from scrapy_rep.protocol.origin import target_of


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


def spellings(url, **settings):
    return Spellings(Settings(settings)).other_spellings(url, target_of(url))


def test_only_the_handler_for_aiohttp_rewrites():
    url = "http://a/x%3Dy"
    assert spellings(url) == set()
    assert spellings(url, DOWNLOAD_HANDLERS={"http": None}) == set()
    aiohttp = pytest.importorskip("scrapy.core.downloader.handlers._aiohttp")
    handlers = {"http": aiohttp.AiohttpDownloadHandler}
    assert spellings(url, DOWNLOAD_HANDLERS=handlers) == {"/x=y"}
    assert "/z" in spellings("http://a/x%3Dy/../z", DOWNLOAD_HANDLERS=handlers)
