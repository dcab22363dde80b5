"""Back-off after 429 and 503, in real crawls."""

import asyncio
import errno
import json
import logging

import pytest
import scrapy
from scrapy import signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.exceptions import StopDownload

from scrapy_rep import Robots
from scrapy_rep.admission import hosts
from scrapy_rep.admission.admission import Admission
from tests.crawling.crawl import SCRAPYS_QUEUE, OfCrawler, crawl, hearing, stat
from tests.crawling.web import answer, held, redirect, robots
from tests.downloadermiddlewares.test_robotstxt_fetch import FOLLOWS
from tests.redis_server import RedisServer, needs_redis
from tests.waiting import a_while, until

PAGES = [f"/{number}" for number in range(6)]
OK = answer(200, "x")


def refuses(status=429, retry_after=None, **more):
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return answer(status, headers={**headers, **more})


async def crawled(site, meanwhile=None, **settings):
    settings = {"RETRY_TIMES": 0, **settings}
    urls = [f"{site.url(path)}#part" for path in PAGES]  # which responses don't have
    return await crawl(*urls, settings=settings, meanwhile=meanwhile)


class LacksFilesUntilARefusal(HTTP11DownloadHandler):
    is_refused = False

    async def download_request(self, request):
        if request.url.endswith("/late") and not self.is_refused:
            raise OSError(errno.EMFILE, "Too many open files")
        response = await super().download_request(request)
        self.is_refused |= response.status == 429
        return response


async def test_what_is_repeated_as_there_was_no_file_is_not_sent_in_a_pause(web):
    refusal = [["wait", 0.15], *refuses(429, "1")]
    site = web.site(answer(404), paths={"/first": [refusal], "/late": [OK]})
    settings = {"DOWNLOAD_HANDLERS": {"http": LacksFilesUntilARefusal}, "RETRY_ENABLED": False}
    result = await crawl(site.url("/first"), site.url("/late"), settings=settings)
    assert result.fetched == [site.url("/first"), site.url("/late")]
    assert result.stats["robotstxt/returned_to_scheduler"] == 1


def told(result):
    return [line for line in result.messages() if "no requests for" in line]


@pytest.mark.parametrize("status", [429, 503])
async def test_requests_under_way_do_not_use_up_retries(web, status):
    site = web.site(answer(404), paths={path: [held(refuses(status, "2")), OK] for path in PAGES})
    waits = []

    async def look(crawler):
        await until(lambda: len(site.targets) == len(PAGES))
        site.release()
        waits.extend(await until(lambda: Robots.of(crawler).waits()))

    result = await crawled(site, meanwhile=look)
    assert {(wait.origin, wait.reason) for wait in waits} <= {
        (site.url(""), "the site answered 429 or 503"),
        (site.url(""), "robots.txt is being looked up"),
    }
    # One counts, and RETRY_TIMES is 0.
    assert result.stats["downloader/response_status_count/200"] == len(PAGES) - 1
    assert result.stats["robotstxt/back_off"] == 1
    (line,) = told(result)
    assert f"answered {status}: no requests for 2 s" in line


@pytest.mark.parametrize(
    ("first", "settings"),
    [
        (refuses(503), {}),
        (refuses(503, "0"), {}),
        (refuses(503, "soon"), {}),
        (refuses(429, "2"), {"REP_BACK_OFF_MAX": 0}),
        (refuses(429, "2"), {"REP_DRY_RUN": True}),
        (refuses(429, "2", **{"Zyte-Error": "/limits/over-user-limit"}), {}),
    ],
)
async def test_what_is_no_back_off(web, first, settings):
    site = web.site(answer(404), paths={path: [first, OK] for path in PAGES})
    assert "robotstxt/back_off" not in (await crawled(site, **settings)).stats
    assert len(site.targets) == len(PAGES)


@pytest.mark.parametrize(
    "queue", [{}, {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}]
)
@pytest.mark.parametrize("value", [None, "31536000", "-5", "soon", "9" * 400])
async def test_a_site_that_refuses_for_ever_gets_one_request_at_a_time(web, value, queue):
    site = web.site(answer(404), paths={"*": [refuses(429, value)]})
    result = await crawled(site, REP_BACK_OFF_MAX=0.05, RETRY_TIMES=2, **queue)
    assert result.stats["finish_reason"] == "finished"
    assert "no requests for 0.05 s" in told(result)[0]
    # Each is sent three times at most, as Scrapy counts, beside those that were under way.
    assert len(site.targets) <= 4 * len(PAGES)
    assert result.stats["retry/max_reached"] == len(PAGES)
    in_a_row = [at for at, line in enumerate(result.messages()) if "no requests for" in line]
    assert len(in_a_row) >= len(site.targets) - len(PAGES)


async def test_the_report_tells_for_how_long_a_site_was_left_alone(web, tmp_path):
    site = web.site(answer(404), paths={"/0": [refuses(429, "0.5"), OK]})
    pages = {"json": tmp_path / "report.json", "html": tmp_path / "report.html"}
    for path in pages.values():
        site.change(answer(404), paths={"/0": [refuses(429, "1"), OK]})
        await crawl(site.url("/0"), settings={"REP_REPORT": str(path)})
    (row,) = json.loads(pages["json"].read_text())["origins"]
    assert (row["back_offs"], row["back_off_seconds"]) == (1, 1.0)
    text = pages["html"].read_text()
    assert "Allowed by robots.txt, but refused by the site" in text
    assert ">status 429<" in text


@pytest.mark.parametrize("retry_after", [None, "31536000"])
async def test_requests_to_a_site_that_refuses_for_too_long_are_dropped(web, retry_after):
    site = web.site(answer(404), paths={"*": [refuses(429, retry_after)]})
    other = web.site(answer(404), host="127.0.0.2")
    urls = [each.url(path) for each in (site, other) for path in PAGES]
    result = await crawl(*urls, settings={"REP_DEFER_TIMEOUT": 0.5, "RETRY_TIMES": 100})
    assert sorted(other.targets) == PAGES
    assert len(site.targets) <= len(PAGES) + 1
    assert result.stats["robotstxt/back_off_dropped"] == len(PAGES)
    assert [str(failure.value) for failure in result.failures] == [
        "'127.0.0.1' has refused all requests for REP_DEFER_TIMEOUT"
    ] * len(PAGES)
    (line,) = [line for line in result.messages(logging.WARNING) if "refuses" in line]
    assert line.startswith("127.0.0.1 refuses all requests")
    dropped = {f"Dropped (its host refuses all): <GET {site.url(path)}>" for path in PAGES}
    assert dropped <= set(result.messages(logging.DEBUG))


async def test_an_answer_that_is_not_read_to_its_end_is_an_answer(web):
    def stop(request):
        if not request.url.endswith("/robots.txt"):
            raise StopDownload

    site = web.site(answer(404), paths={"/0": [refuses(429, "1"), OK], "*": [OK]})
    phases = [[scrapy.Request(site.url(path), dont_filter=True) for path in PAGES]]
    own = {"RETRY_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    opened = hearing(signals.headers_received, stop)
    result = await crawl(site.url("/0"), settings=own, opened=opened, phases=phases)
    assert len(site.targets) == 1 + len(PAGES)
    assert result.stats["robotstxt/back_off"] == 1
    assert "robotstxt/back_off_dropped" not in result.stats


async def test_the_host_that_has_refused_a_browser_after_a_redirect_has_the_pause(web):
    other = web.site(answer(404), paths={"/1": [refuses(429, "200")]}, host="127.0.0.2")
    site = web.site(answer(404), paths={"/0": [redirect(other.url("/1"))], "*": [OK]})
    waits = []

    async def look(crawler):
        await until(lambda: site.targets == ["/0", "/3"])
        waits.extend(await until(lambda: Robots.of(crawler).waits()))
        await crawler.engine.close_spider_async(reason="enough")

    phases = [[scrapy.Request(other.url("/2")), scrapy.Request(site.url("/3"))]]
    settings = {**FOLLOWS, "RETRY_ENABLED": False}
    await crawl(site.url("/0"), settings=settings, meanwhile=look, phases=phases)
    assert [wait.origin for wait in waits] == [other.url("")]


async def test_a_success_ends_the_doubling(web):
    site = web.site(answer(404), paths={path: [refuses(), OK] for path in ("/0", "/3")})
    settings = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await crawled(site, RETRY_TIMES=1, **settings)
    seconds = [float(line.split(" for ")[1].split()[0]) for line in told(result)]
    assert len(seconds) == 2
    assert max(seconds) <= 1.25


async def test_a_refusal_whose_body_is_lost_begins_a_pause(web):
    refusal = "HTTP/1.1 429 No\r\nRetry-After: 2\r\nContent-Length: 99\r\n\r\nx"
    site = web.site(answer(404), paths={"/0": [[["send", refusal], ["close"]]]})
    settings = {"CONCURRENT_REQUESTS": 1, "RETRY_ENABLED": False}
    result = await crawl(site.url("/0"), site.url("/1"), settings=settings)
    assert result.fetched == [site.url("/1")]
    assert result.stats["robotstxt/back_off"] == 1
    first, second = (entry["at"] for entry in site.journal if entry["target"] != "/robots.txt")
    assert second - first > 1.9


async def test_a_refusal_without_a_clear_host_is_a_response_and_begins_no_pause(web):
    site = web.site(answer(404), paths={"*": [refuses(429, "99"), OK]})
    meta = {"dont_obey_robotstxt": True, "verbatim_url": True}
    request = scrapy.Request(f"http://127.0.0.1:000{site.port}/1", meta=meta)
    result = await crawl(request, settings={"RETRY_TIMES": 1})
    assert site.targets == ["/1", "/1"]
    assert result.fetched == [request.url]
    assert "robotstxt/back_off" not in result.stats


async def test_what_is_sent_as_the_spider_opens_waits_for_the_pauses_of_others(web, tmp_path):
    needs_redis()
    server = RedisServer(tmp_path)
    done = []

    async def meanwhile(crawler):
        server.pause()
        read = Admission.of(crawler).hosts.read_pauses
        readings = [asyncio.ensure_future(read()) for _ in range(2)]
        await a_while()
        done.extend(reading.done() for reading in readings)
        server.resume()
        await asyncio.gather(*readings)

    site = web.site(answer(404))
    await crawl(site.url("/"), settings={"REP_STORE": server.uri}, meanwhile=meanwhile)
    server.stop()
    assert done == [False, False]


async def test_disallowed_requests_are_not_sent_to_ask(web, monkeypatch):
    """Else the next one would leave only after this time."""
    monkeypatch.setattr(hosts, "CHECK_INTERVAL", 3600.0)
    site = web.site(robots("User-agent: *\nDisallow: /no/"), paths={"/0": [refuses(), OK]})

    async def feed(crawler):
        """Add requests that leave before all others, when the site has refused one."""
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for number in range(3):
            request = scrapy.Request(site.url(f"/no/{number}"), priority=1)
            crawler.engine.crawl(crawler.spider.prepare(request))

    result = await crawl(site.url("/0"), meanwhile=feed)
    assert site.targets == ["/0", "/0"]
    assert result.stats["robotstxt/forbidden"] == 3


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])
@pytest.mark.parametrize("seconds", [200, 900], ids=["wait", "dropped"])
async def test_no_robotstxt_is_fetched_in_a_pause(web, queue, seconds):
    site = web.site(answer(404), paths={"/0": [refuses(429, str(seconds)), OK]})
    same_host, other_host = web.site(answer(404)), web.site(answer(404), host="127.0.0.2")
    slow = web.site(answer(404), paths={"/": [held(OK)]}, host="127.0.0.3")
    fetched = []

    async def feed(crawler):
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for other in (same_host, other_host):
            crawler.engine.crawl(crawler.spider.prepare(scrapy.Request(other.url("/1"))))
        await until(lambda: other_host.targets == ["/1"])
        fetched.extend(same_host.journal)
        slow.release()
        await crawler.engine.close_spider_async(reason="enough")

    settings = {"REP_BACK_OFF_MAX": seconds, **queue}
    await crawl(site.url("/0"), slow.url("/"), meanwhile=feed, settings=settings)
    assert not fetched


class RewritesToTheOtherHost:
    def process_request(self, request, spider=None):
        request._set_url(request.meta.get("other", request.url))


async def test_the_wire_fetches_no_robotstxt_in_a_pause(web):
    refusing = web.site(robots(""), paths={"/1": [refuses(429, "2")]}, host="127.0.0.2")
    other_port, site = web.site(robots(""), host="127.0.0.2"), web.site(robots(""))
    first = refusing.url("/1")
    again = scrapy.Request(site.url("/a"), meta={"other": other_port.url("/b")})
    then = {"then": lambda response: [again] if response.url == first else []}
    settings = {"RETRY_ENABLED": False, "DOWNLOADER_MIDDLEWARES": {RewritesToTheOtherHost: 995}}
    assert (await crawl(first, settings=settings, **then)).fetched == [first, other_port.url("/b")]
    (refused,) = (each["at"] for each in refusing.journal if each["target"] == "/1")
    assert other_port.journal[0]["at"] - refused > 1.9


class WaitsForTheRefusal(OfCrawler):
    async def process_request(self, request, spider=None):
        if request.url.endswith("/2"):
            await until(lambda: stat(self.crawler, "robotstxt/back_off"))


async def test_a_probe_whose_rules_have_expired_in_the_pause_is_decided_on_again(web):
    site = web.site(robots(""), paths={"/1": [refuses(429, "1")], "*": [OK]})
    settings = {"REP_CACHE_TTL": 1, "REP_CACHE_TTL_MIN": 0, "RETRY_ENABLED": False}
    settings["DOWNLOADER_MIDDLEWARES"] = {WaitsForTheRefusal: 995}
    result = await crawl(site.url("/1"), site.url("/2"), settings=settings)
    assert "robotstxt/returned_to_scheduler" not in result.stats
    requests = [each["target"] for each in site.journal]
    assert requests == ["/robots.txt", "/1", "/robots.txt", "/2"]
    assert site.journal[2]["at"] - site.journal[1]["at"] > 0.9
