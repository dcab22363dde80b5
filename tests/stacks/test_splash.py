"""scrapy-splash: its middleware rewrites requests to those of a Splash.

Version 0.11.1 can't be imported with Scrapy 2.19, where a name is put back here, and its
SplashDeduplicateArgsMiddleware, which is left out, refuses to work with it.
"""

from __future__ import annotations

import pytest

from tests.stacks.endpoints import Splash

pytestmark = pytest.mark.needs("scrapy_splash")

MIDDLEWARES = {
    "scrapy_splash.SplashCookiesMiddleware": 723,
    "scrapy_splash.SplashMiddleware": 725,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": 810,
}

META = {"splash": {"endpoint": "render.html", "args": {}}}
MOVED = ["moved/private/moved"]
"""What it renders in place of a page, and the URL of the response does not tell."""

UNTOLD = ["none/private/c"]
"""Splash answers with 200 whatever the site does: nobody knows that it has no robots.txt."""


@pytest.fixture
def splash():
    splash = Splash()
    yield splash
    splash.close()


def settings(splash, **middlewares):
    return {
        "ADDONS": {"tests.stacks.parts.OldNames": 1, "scrapy_rep.Addon": 500},
        "SPLASH_URL": splash.url,
        # The default asks the downloader for what Scrapy 2.19 has no more.
        "SPLASH_SLOT_POLICY": "scrapy_default",
        "DOWNLOADER_MIDDLEWARES": {**MIDDLEWARES, **middlewares},
        "REQUEST_FINGERPRINTER_CLASS": "scrapy_splash.SplashRequestFingerprinter",
    }


def test_meta_of_each_page(stack, splash):
    stack = stack("scrapy-splash")
    sites = stack.sites()
    told = stack.crawl(sites, settings=settings(splash), meta=META)
    stack.check(sites, "meta of each page", splash, known=MOVED)
    assert told["fetched"]


def test_meta_on_all_requests(stack, splash):
    stack = stack("scrapy-splash")
    sites = stack.sites()
    on_all = {**settings(splash, **{"tests.stacks.parts.MetaOnAll": 543})}
    told = stack.crawl(sites, settings={**on_all, "META_ON_ALL": META})
    stack.check(sites, "meta on all by a middleware", splash, known=MOVED, missing=UNTOLD)
    assert told["fetched"]
