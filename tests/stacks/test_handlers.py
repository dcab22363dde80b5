"""Scrapy's own download handlers, in place of the one for HTTP/1.1."""

from __future__ import annotations

import pytest

from tests.stacks.h2_web import H2Web
from tests.stacks.stack import EVERY

HANDLERS = "scrapy.core.downloader.handlers"
MIB = 1024
SITES = (*EVERY, "big")


@pytest.fixture
def h2_web(certificate):
    web = H2Web(certificate)
    yield web
    web.close()


@pytest.mark.needs("h2", "priority")
def test_http2(stack, h2_web):
    stack = stack("h2")
    stack.web = h2_web
    sites = stack.sites(*SITES)
    handler = f"{HANDLERS}.http2.H2DownloadHandler"
    told = stack.crawl(sites, settings={"DOWNLOAD_HANDLERS": {"https": handler}})
    assert {headers["protocol"] for _, _, headers in sites.journal()} == {"HTTP/2"}
    stack.check(sites, f"HTTP/2 handler ({told['peak_kib'] // MIB} MiB)")


@pytest.mark.parametrize("reactor", [True, False])
@pytest.mark.parametrize(
    ("package", "handler", "missing"),
    [
        pytest.param(
            "httpx2",
            "_httpx.HttpxDownloadHandler",
            # It takes no transfer coding but chunked.
            ["packed/page"],
            marks=pytest.mark.needs("httpx2"),
        ),
        pytest.param(
            "aiohttp", "_aiohttp.AiohttpDownloadHandler", [], marks=pytest.mark.needs("aiohttp")
        ),
    ],
)
def test_handler(stack, package, handler, missing, reactor):
    # Scrapy 2.14 has none of these.
    pytest.importorskip(f"{HANDLERS}.{handler.partition('.')[0]}")
    stack = stack(package)
    sites = stack.sites(*SITES, "packed")
    path = f"{HANDLERS}.{handler}"
    told = stack.crawl(
        sites,
        settings={
            "DOWNLOAD_HANDLERS": {"http": path, "https": path},
            "TWISTED_REACTOR_ENABLED": reactor,
        },
    )
    where = "with" if reactor else "without"
    case = f"its handler, {where} a reactor ({told['peak_kib'] // MIB} MiB)"
    stack.check(sites, case, missing=missing)
