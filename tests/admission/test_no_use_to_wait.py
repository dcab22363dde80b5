"""What no wait can help is dropped soon: real crawls, as long as they take."""

import logging

import pytest
import scrapy
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, StopDownload

from tests.crawling.crawl import AS_BY_DEFAULT, Lines, crawl, hearing, stat
from tests.crawling.web import answer, held, robots
from tests.waiting import until

DEFER = {**AS_BY_DEFAULT, "REP_DEFER_TIMEOUT": 300}
NO_NAME = "http://no-such-name.invalid"


def dns_error():
    """The error that Scrapy raises for a page of a name that does not exist."""
    if scrapy.version_info >= (2, 15):
        return scrapy.exceptions.CannotResolveHostError
    from twisted.internet.error import DNSLookupError

    return DNSLookupError


@pytest.mark.parametrize(
    ("retries", "tries"), [({}, 3), ({"RETRY_TIMES": 1}, 2), ({"RETRY_ENABLED": False}, 1)]
)
async def test_a_name_that_does_not_exist_is_tried_as_often_as_a_page(web, retries, tries):
    site = web.site(robots(""))
    urls = [f"{NO_NAME}/1", f"{NO_NAME}/2", site.url("/")]
    result = await crawl(*urls, settings={**DEFER, **retries})
    assert result.fetched == [site.url("/")]
    assert result.dropped == dict.fromkeys(urls[:2], "unreachable")
    error = result.failures[0].value
    assert isinstance(error.__cause__, dns_error())
    assert "no-such-name.invalid" in str(error.__cause__)
    assert error.verdict.outage.cause == "DNS lookup failed"
    assert result.stats["robotstxt/request_count"] == 1 + tries
    assert "robotstxt/deferred" not in result.stats


async def test_a_redirect_to_a_name_that_does_not_exist_is_an_outage_of_the_site(web):
    site = web.site(answer(302, headers={"Location": f"{NO_NAME}/robots.txt"}))
    (failure,) = (await crawl(site.url("/"), settings=DEFER)).failures
    assert failure.value.verdict.outage.cause == "DNS lookup failed (no-such-name.invalid)"
    assert failure.value.__cause__ is None


class Ignoring:
    def process_request(self, request):
        if request.url.endswith(".txt"):
            raise IgnoreRequest("no text files")


def stopping(signal, *, fail):
    """Return what connects a handler that stops the download of text files."""

    def stop(request):
        if request.url.endswith(".txt"):
            raise StopDownload(fail=fail)

    return hearing(getattr(scrapy.signals, signal), stop)


DECISIONS = {
    "IgnoreRequest": ({"DOWNLOADER_MIDDLEWARES": {Ignoring: 100}}, None),
    "headers_received": ({}, stopping("headers_received", fail=True)),
    "headers_received, not failed": ({}, stopping("headers_received", fail=False)),
    "bytes_received": ({}, stopping("bytes_received", fail=True)),
}


@pytest.mark.parametrize("name", DECISIONS)
async def test_a_decision_of_the_users_own_code_is_no_outage(web, name):
    settings, opened = DECISIONS[name]
    site, other = web.site(robots("# a comment")), web.site(answer(404))
    urls = [site.url("/1"), site.url("/2")]
    result = await crawl(*urls, other.url("/"), settings={**DEFER, **settings}, opened=opened)
    assert result.dropped.keys() >= set(urls)
    assert set(result.dropped.values()) == {"unreachable"}
    assert "robotstxt/deferred" not in result.stats
    who = "raised scrapy.exceptions.IgnoreRequest" if settings else "raised StopDownload"
    (line,) = result.messages(logging.WARNING)
    assert who in line
    assert "next try" not in line
    # One try, as no other would end otherwise.
    assert result.stats["robotstxt/request_count"] == 2
    assert result.failures[0].request.meta["robotstxt"]["next_try"] is None


async def test_with_nothing_else_to_do_a_crawl_ends_within_30_seconds(web, clock):
    """Before that, REP_DEFER_TIMEOUT counts. What can be tried meanwhile is tried."""
    failing = web.site(answer(503))
    work = web.site(robots(""), paths={"/": [held(answer())]})
    lines, dropped = Lines("Waiting for 1 unreachable origin"), []

    async def tried(times, crawler):
        before = len(failing.robots_requests)
        await until(lambda: len(failing.robots_requests) >= before + times)
        dropped.append(stat(crawler, "robotstxt/unreachable_dropped"))

    async def meanwhile(crawler):
        await until(lambda: work.targets)
        clock.advance(60)
        await tried(3, crawler)
        work.release()
        await until(lambda: lines.heard)
        clock.advance(25)
        await tried(3, crawler)
        clock.advance(5)

    settings = {**DEFER, "REP_RETRY_DELAY": 0.4, "REP_RETRY_DELAY_MAX": 0.4}
    urls = [failing.url("/1"), failing.url("/2"), work.url("/")]
    result = await crawl(*urls, settings=settings, opened=lines.listen, meanwhile=meanwhile)
    assert dropped == [0, 0]
    assert result.dropped == dict.fromkeys(urls[:2], "unreachable")
    assert result.stats["robotstxt/deferred_dropped"] == 2
    assert lines.heard[0].endswith(
        ". Nothing else is left to do, so the crawl ends within 30 s: "
        "what can't be tried again until then is dropped"
    )


@pytest.mark.parametrize(
    ("answered", "meta", "retry_delay"),
    [(answer(503), {}, 70), ([["close"]], {}, 31), ([["hold"]], {"download_timeout": 0.5}, 10)],
    ids=["503, tried again too late", "closed, the same", "hangs, so that a try takes too long"],
)
async def test_a_try_that_can_not_end_in_time_is_not_waited_for(web, answered, meta, retry_delay):
    failing = web.site(answered)
    settings = {**DEFER, "REP_RETRY_DELAY": retry_delay}
    result = await crawl(Request(failing.url("/"), meta=meta), settings=settings)
    assert result.dropped == {failing.url("/"): "unreachable"}
    assert result.stats["robotstxt/deferred"] == len(failing.robots_requests) == 1


async def test_work_that_comes_after_all_lets_the_rest_wait_on(web, clock):
    """A site that is reachable again has pages to fetch: the other one waits as before."""
    back, failing = web.site(answer(503)), web.site(answer(503))
    lines = Lines("Waiting for 2 unreachable origins")

    async def meanwhile(crawler):
        await until(lambda: lines.heard)
        back.change(robots(""), paths={"/": [held(answer())]})
        await until(lambda: back.targets)
        clock.advance(60)
        before = len(failing.robots_requests)
        await until(lambda: len(failing.robots_requests) > before)
        failing.change(robots(""))
        await until(lambda: failing.targets)
        back.release()

    settings = {**DEFER, "REP_RETRY_DELAY": 0.4, "REP_RETRY_DELAY_MAX": 0.4}
    urls = [back.url("/"), failing.url("/")]
    result = await crawl(*urls, settings=settings, opened=lines.listen, meanwhile=meanwhile)
    assert result.fetched == urls[::-1]
