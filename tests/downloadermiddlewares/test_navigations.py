"""Chromium itself asks in tests/stacks/test_playwright.py; here is what can't be asked."""

from __future__ import annotations

import pytest
import pytest_twisted
from scrapy import Request

from scrapy_rep import keep_from_disallowed
from scrapy_rep.downloadermiddlewares.recheck import Recheck
from scrapy_rep.utils.per_crawl import get_part
from tests.crawling.crawl import crawl
from tests.crawling.web import robots
from tests.running import in_asyncio


class Firefox:
    """A page of a browser that doesn't speak Chromium's protocol."""

    def __init__(self):
        self.context = self
        self.closed = False

    async def new_cdp_session(self, page):
        raise RuntimeError("CDP session is only available in Chromium")

    async def close(self):
        self.closed = True


@in_asyncio
async def test_a_page_that_cannot_be_watched_is_closed():
    page = Firefox()
    with pytest.raises(RuntimeError, match="only available in Chromium"):
        await keep_from_disallowed(page, Request("http://example.com/"))
    assert page.closed


@pytest_twisted.ensureDeferred
async def test_a_crawl_that_is_over_is_not_asked(web):
    # It would say of each origin that it does not know that the crawl is closing.
    result = await crawl(web.site(robots("")).url("/a"))
    assert get_part(result.crawler, Recheck) is None
