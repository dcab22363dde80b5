"""What may become of a URL between the verdict and the site."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from scrapy_rep.decision.spellings import as_parsed, rewriter, without_dots


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
    assert without_dots(target) == without


def test_blanks_as_url_parsers_read_them():
    assert as_parsed(" \t\x00ht\ntp://a/p\tq r\r\n ") == "http://a/pq r"


def test_only_the_handler_for_aiohttp_rewrites():
    assert rewriter(Settings()) is None
    assert rewriter(Settings({"DOWNLOAD_HANDLERS": {"http": None}})) is None
    aiohttp = pytest.importorskip("scrapy.core.downloader.handlers._aiohttp")
    handler = aiohttp.AiohttpDownloadHandler
    rewrite = rewriter(Settings({"DOWNLOAD_HANDLERS": {"http": handler}}))
    assert rewrite("http://a/x%3Dy/../z") == "http://a/z"
