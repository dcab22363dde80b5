"""Back-off after 429 and 503, in real crawls."""

from __future__ import annotations

import logging

import pytest
import pytest_twisted

from tests.crawling.crawl import crawl
from tests.crawling.web import answer

PAGES = [f"/{number}" for number in range(6)]
OK = answer(200, "x")


def refuses(status=429, retry_after=None, **more):
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return answer(status, headers={**headers, **more})


async def crawled(site, **settings):
    return await crawl(*map(site.url, PAGES), settings={"RETRY_TIMES": 0, **settings})


def told(result):
    return [line for line in result.messages(logging.INFO) if "no requests for" in line]


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("status", [429, 503])
async def test_requests_under_way_do_not_use_up_retries(web, status):
    site = web.site(answer(404), paths={path: [refuses(status, "2"), OK] for path in PAGES})
    result = await crawled(site)
    # One counts, and RETRY_TIMES is 0.
    assert result.stats["downloader/response_status_count/200"] == len(PAGES) - 1
    assert result.stats["robotstxt/back_off"] == 1
    (line,) = told(result)
    assert f"answered {status}: no requests for 2 s" in line


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize(
    ("first", "settings"),
    [
        (refuses(503), {}),
        (refuses(503, "0"), {}),
        (refuses(503, "soon"), {}),
        (refuses(429, "2"), {"REP_BACK_OFF": False}),
        (refuses(429, "2"), {"REP_DRY_RUN": True}),
        (refuses(429, "2", **{"Zyte-Error": "/limits/over-user-limit"}), {}),
    ],
)
async def test_what_is_no_back_off(web, first, settings):
    site = web.site(answer(404), paths={path: [first, OK] for path in PAGES})
    result = await crawled(site, **settings)
    assert "robotstxt/back_off" not in result.stats
    assert len(site.targets) == len(PAGES)


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("value", [None, "31536000", "-5", "soon", "9" * 400])
async def test_the_maximum_holds_and_a_crawl_ends(web, value):
    site = web.site(answer(404), paths={"*": [refuses(429, value)]})
    result = await crawled(site, REP_BACK_OFF_MAX=0.2)
    assert result.stats["finish_reason"] == "finished"
    assert "no requests for 0.2 s" in told(result)[0]


@pytest_twisted.ensureDeferred
async def test_without_retries_nothing_is_sent_twice(web):
    site = web.site(answer(404), paths={"*": [refuses(429, "1")]})
    await crawled(site, RETRY_ENABLED=False)
    assert sorted(site.targets) == PAGES


@pytest_twisted.ensureDeferred
async def test_a_crawl_ends_with_the_scheduler_of_scrapy(web):
    site = web.site(answer(404), paths={"*": [refuses(429, "31536000")]})
    result = await crawled(site, SCHEDULER_PRIORITY_QUEUE="scrapy.pqueues.ScrapyPriorityQueue")
    assert len(site.targets) <= 2 * len(PAGES)
    assert result.stats["finish_reason"] == "finished"
