"""scrapy-playwright: pages by a real Chromium; robots.txt by Scrapy's own handler."""

from __future__ import annotations

import os

import pytest

from tests.extensions.report.browser import find_browser

pytestmark = pytest.mark.needs("scrapy_playwright")

HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ON_ALL = {
    "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.MetaOnAll": 543},
    "META_ON_ALL": {"playwright": True},
}


@pytest.fixture
def settings():
    browser = find_browser()
    if browser is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium")
        pytest.skip("no Chromium here")
    return {
        "DOWNLOAD_HANDLERS": {"http": HANDLER, "https": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": browser, "args": OPTIONS},
    }


def test_meta_of_the_page(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("plain", "none", "down", "agents", "big")
    playwright.crawl(sites, settings=settings, meta={"playwright": True})
    playwright.check(sites, "meta of each page")


def test_meta_on_all_requests(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("plain", "none", "down", "agents", "big")
    playwright.crawl(sites, settings={**settings, **ON_ALL})
    playwright.check(sites, "meta on all by a middleware")


def test_redirect_inside_the_browser(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("moved")
    told = playwright.crawl(sites, settings=settings, meta={"playwright": True})
    playwright.check(sites, "a redirect inside the browser", known=["moved/private/moved"])
    assert told["fetched"] == []
    assert told["dropped"] == {sites.url("moved", "/moved"): "rule"}


SUBRESOURCES = [f"rich/private/{name}" for name in ("pixel.png", "api", "s.js", "left")]


def test_what_pages_fetch(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("rich")
    told = playwright.crawl(sites, settings=settings, meta={"playwright": True})
    playwright.check(sites, "what pages fetch, without the hook", known=SUBRESOURCES)
    assert told["fetched"] == [sites.url("rich", "/rich")]
    assert told["dropped"] == {sites.url("rich", "/leaves"): "rule"}


def test_what_pages_fetch_with_the_hook(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("rich")
    hook = {"PLAYWRIGHT_ABORT_REQUEST": "scrapy_rep.abort_disallowed"}
    told = playwright.crawl(sites, settings={**settings, **hook}, meta={"playwright": True})
    playwright.check(sites, "what pages fetch, with the hook")
    assert sites.url("rich", "/rich") in told["fetched"]
    assert [url for url in told["fetched"] if "/private" in url] == []
