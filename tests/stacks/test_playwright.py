"""scrapy-playwright: pages by a real Chromium; robots.txt by Scrapy's own handler."""

from __future__ import annotations

import os

import pytest

from tests.crawling.web import redirect
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


WATCHED = {
    "playwright": True,
    "playwright_page_init_callback": "scrapy_rep.keep_from_disallowed",
}


def test_chromium_asks_before_it_follows_a_redirect(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("plain", "moved", "rich")
    told = playwright.crawl(sites, settings=settings, meta=WATCHED)
    playwright.check(sites, "redirects and all else, Chromium asks")
    assert told["fetched"].count(sites.url("rich", "/rich")) == 1
    for led_away in (sites.url("moved", "/moved"), sites.url("rich", "/leaves")):
        assert told["dropped"][led_away] == "rule"


def test_chromium_waits_for_the_robots_txt_that_it_is_led_to(stack, settings):
    playwright = stack("scrapy-playwright")
    sites = playwright.sites("plain", "moved")
    sites.open["moved"].change(paths={"/moved": [redirect(sites.url("plain"), 302)]})
    moved = [sites.url("moved", "/moved")]
    told = playwright.crawl(sites, settings=settings, meta=WATCHED, urls=moved)
    playwright.check(sites, "a redirect to an origin not known, Chromium asks")
    assert told["fetched"] == [sites.url("plain")]
    assert sites.robots_requests() == {"plain": 1, "moved": 1}
