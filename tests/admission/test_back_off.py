"""Back-off after 429 and 503, in real crawls."""

import json
import logging
import math

import pytest
import scrapy
from scrapy.exceptions import IgnoreRequest

from scrapy_rep import Robots
from scrapy_rep.admission import back_off
from scrapy_rep.protocol.origin import origin_of
from tests.admission.worker import DELAY, SITE, Worker, page
from tests.crawling.crawl import SCRAPYS_QUEUE, crawl, stat
from tests.crawling.web import answer, robots
from tests.waiting import settle, until

PAGES = [f"/{number}" for number in range(6)]
OK = answer(200, "x")


def refuses(status=429, retry_after=None, **more):
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return answer(status, headers={**headers, **more})


async def crawled(site, meanwhile=None, **settings):
    settings = {"RETRY_TIMES": 0, **settings}
    return await crawl(*map(site.url, PAGES), settings=settings, meanwhile=meanwhile)


def told(result):
    return [line for line in result.messages() if "no requests for" in line]


@pytest.mark.parametrize("status", [429, 503])
async def test_requests_under_way_do_not_use_up_retries(web, status):
    site = web.site(answer(404), paths={path: [refuses(status, "2"), OK] for path in PAGES})
    waits = []

    async def look(crawler):
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
    result = await crawled(site, **settings)
    assert "robotstxt/back_off" not in result.stats
    assert len(site.targets) == len(PAGES)


@pytest.mark.parametrize("value", [None, "31536000", "-5", "soon", "9" * 400])
async def test_a_site_that_refuses_for_ever_gets_one_request_at_a_time(web, value):
    site = web.site(answer(404), paths={"*": [refuses(429, value)]})
    result = await crawled(site, REP_BACK_OFF_MAX=0.05, RETRY_TIMES=2)
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


async def test_one_request_tells_whether_the_others_may_follow(web):
    site = web.site(answer(404), paths={"*": [refuses()] * 9 + [OK]})
    result = await crawled(site, REP_BACK_OFF_MAX=0.05, RETRY_TIMES=9)
    # Six were under way at most; then one by one until one is answered.
    assert result.stats["downloader/response_status_count/200"] == len(PAGES)
    assert result.stats["robotstxt/back_off"] >= 10 - len(PAGES)


@pytest.mark.parametrize("retry_after", [None, "31536000"])
async def test_requests_to_a_site_that_refuses_for_too_long_are_dropped(web, retry_after):
    site = web.site(answer(404), paths={"*": [refuses(429, retry_after)]})
    other = web.site(answer(404), host="127.0.0.2")
    urls = [each.url(path) for each in (site, other) for path in PAGES]
    settings = {"REP_DEFER_TIMEOUT": 0.5, "RETRY_TIMES": 100}
    result = await crawl(*urls, settings=settings)
    assert sorted(other.targets) == PAGES
    assert len(site.targets) <= len(PAGES) + 1
    assert result.stats["robotstxt/back_off_dropped"] == len(PAGES)
    assert [str(failure.value) for failure in result.failures] == [
        "'127.0.0.1' has refused all requests for REP_DEFER_TIMEOUT"
    ] * len(PAGES)
    (line,) = [line for line in result.messages(logging.WARNING) if "refuses" in line]
    assert line.startswith("127.0.0.1 refuses all requests")


async def test_if_the_one_request_gets_no_response_another_one_is_sent(web):
    site = web.site(answer(404), paths={"/0": [refuses(429, "1")], "/1": [[["close"]]], "*": [OK]})
    settings = {"CONCURRENT_REQUESTS": 1, "RETRY_ENABLED": False, "REP_DEFER_TIMEOUT": 20}
    result = await crawled(site, **settings)
    assert sorted(set(site.targets)) == PAGES
    assert result.stats["downloader/response_status_count/200"] == len(PAGES) - 2


async def test_a_success_ends_the_doubling(web):
    pages = {path: [refuses(), OK] for path in ("/0", "/3")}
    site = web.site(answer(404), paths=pages)
    settings = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await crawled(site, RETRY_TIMES=1, **settings)
    seconds = [float(line.split(" for ")[1].split()[0]) for line in told(result)]
    assert len(seconds) == 2
    assert max(seconds) <= 1.25


@pytest.mark.parametrize("name", ["X-Squid-Error", "Proxy-Authenticate", "Zyte-Error"])
async def test_what_a_proxy_says_of_itself_is_not_the_sites(web, name):
    proxy = web.site(answer(404), paths={"*": [refuses(429, "2", **{name: "ERR_LIMIT 0"})]})
    meta = {"proxy": proxy.url("")}
    requests = [scrapy.Request(f"http://site.example{path}", meta=meta) for path in PAGES]
    result = await crawl(*requests, settings={"RETRY_TIMES": 0})
    assert "robotstxt/back_off" not in result.stats
    assert len(proxy.targets) >= len(PAGES)


async def test_without_retries_nothing_is_sent_twice(web):
    site = web.site(answer(404), paths={"*": [refuses(429, "1")]})
    await crawled(site, RETRY_ENABLED=False)
    assert sorted(site.targets) == PAGES


async def test_a_crawl_ends_with_the_scheduler_of_scrapy(web):
    site = web.site(answer(404), paths={"*": [refuses(429, "31536000")]})
    queue = {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"}
    result = await crawled(site, REP_BACK_OFF_MAX=0.3, **queue)
    assert len(site.targets) <= 2 * len(PAGES)
    assert result.stats["finish_reason"] == "finished"


@pytest.mark.parametrize("scheme", ["sqlite", "redis"])
async def test_workers_of_a_fleet_wait_for_each_other(web, tmp_path, redis_server, scheme):
    paths = {"*": [refuses(429, "3600")]}
    site = web.site(answer(404), paths=paths)
    uri = redis_server.uri if scheme == "redis" else f"sqlite:///{tmp_path / 'robots.sqlite'}"
    settings = {"REP_STORE": uri, "REP_DEFER_TIMEOUT": 0.5, "REP_BACK_OFF_MAX": 100}
    await crawled(site, **settings)
    sent = len(site.targets)
    # The second worker reads the pause before it sends anything.
    site.change(paths={"*": [refuses(429, "1")]})
    result = await crawl(site.url("/0"), settings={**settings, "RETRY_TIMES": 5})
    assert len(site.targets) == sent
    assert result.stats["robotstxt/back_off_dropped"] == 1


async def test_what_is_dropped_takes_no_turns(web):
    paths = {"*": [refuses(429, "31536000")]}
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.2"), paths=paths)
    result = await crawled(site, REP_DEFER_TIMEOUT=0.5, RETRY_TIMES=100)
    assert result.stats["robotstxt/back_off_dropped"] == len(PAGES)
    assert result.stats["robotstxt/turns"] < len(PAGES)


async def test_disallowed_requests_are_not_sent_to_ask(web, monkeypatch):
    """Else the next one would leave only after this time."""
    monkeypatch.setattr(back_off, "_CHECK_INTERVAL", 3600.0)
    site = web.site(robots("User-agent: *\nDisallow: /no/"), paths={"/0": [refuses(), OK]})
    result = await crawl(site.url("/0"), meanwhile=feed_first(site))
    assert site.targets == ["/0", "/0"]
    assert result.stats["robotstxt/forbidden"] == 3


def feed_first(site):
    """Add requests that leave before all others, when the site has refused one."""

    async def feed(crawler):
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for number in range(3):
            request = scrapy.Request(site.url(f"/no/{number}"), priority=1)
            crawler.engine.crawl(crawler.spider.prepare(request))

    return feed


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])
async def test_no_robotstxt_is_fetched_in_a_pause(web, queue):
    site = web.site(answer(404), paths={"/0": [refuses(429, "200"), OK]})
    same_host, other_host = web.site(answer(404)), web.site(answer(404), host="127.0.0.2")
    fetched = []

    async def feed(crawler):
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for other in (same_host, other_host):
            crawler.engine.crawl(crawler.spider.prepare(scrapy.Request(other.url("/1"))))
        await until(lambda: other_host.targets == ["/1"])
        fetched.extend(same_host.journal)
        await crawler.engine.close_spider_async(reason="enough")

    await crawl(site.url("/0"), meanwhile=feed, settings=queue)
    assert not fetched


class Dropping:
    """A middleware that drops what some other has let pass."""

    def process_request(self, request):
        if "/no/" in request.url:
            raise IgnoreRequest


async def test_what_others_drop_does_not_ask_for_long(web):
    site = web.site(answer(404), paths={"/0": [refuses(), OK]})

    middlewares = {Dropping: 600}
    await crawl(
        site.url("/0"), meanwhile=feed_first(site), settings={"DOWNLOADER_MIDDLEWARES": middlewares}
    )
    assert site.targets == ["/0", "/0"]


# In made-up time.

REFUSED = "the site answered 429 or 503"


@pytest.fixture
def worker():
    worker = Worker()
    worker.knows_no_rules()
    return worker


class Probing:
    """A host that has refused a request; another one is under way, and a third is the probe."""

    def __init__(self, site=SITE, **settings):
        self.worker = worker = Worker(**settings)
        worker.knows_no_rules(site)
        self.first, self.late, self.probe, self.next = (page(n, site) for n in range(4))
        for request in (self.first, self.late):
            assert worker.sends(request) is None
        worker.answered(self.first, 429, 1)
        worker.time.advance(1.1)
        assert worker.leaves(self.probe) is None
        assert worker.sends(self.probe) is None

    def waits_for(self):
        """Seconds until the next request may be sent; infinity if that is not known."""
        held = self.worker.sends(self.next)
        assert held is None or held[0] == REFUSED
        return 0 if held is None else held[1] - self.worker.time.now


@pytest.mark.event_loop
def test_the_others_wait_for_the_response_to_the_probe():
    scene = Probing()
    assert scene.waits_for() == math.inf
    assert scene.worker.leaves(scene.next) == (REFUSED, math.inf)
    scene.worker.told.clear()
    scene.worker.answered(scene.probe)
    assert scene.worker.told == [origin_of(SITE)]
    assert scene.waits_for() == 0
    assert not scene.worker.back_off.hosts


@pytest.mark.event_loop
@pytest.mark.parametrize("status", [200, 429, None])
def test_a_longer_pause_that_is_asked_for_late_holds(status):
    scene = Probing()
    scene.worker.answered(scene.late, 429, 10)
    scene.worker.time.advance(0.5)
    if status is None:
        scene.worker.ends(scene.probe)
    else:
        scene.worker.answered(scene.probe, status, 3)
    assert scene.waits_for() == pytest.approx(9.5)
    scene.worker.time.advance(9.6)
    assert scene.waits_for() == 0


@pytest.mark.event_loop
def test_a_probe_without_a_response_begins_a_pause_ten_times_as_long():
    scene = Probing(REP_BACK_OFF_MAX=100)
    scene.worker.time.advance(5)
    scene.worker.ends(scene.probe)
    assert scene.waits_for() == pytest.approx(50)
    scene.worker.time.advance(51)
    assert scene.worker.sends(scene.next) is None
    scene.worker.time.advance(50)
    scene.worker.ends(scene.next)
    scene.next = page(4)
    assert scene.waits_for() == pytest.approx(100)


@pytest.mark.event_loop
def test_a_longer_pause_may_be_too_long(caplog):
    scene = Probing(REP_DEFER_TIMEOUT=5)
    scene.worker.answered(scene.late, 429, 40)
    assert scene.worker.back_off.is_dropping("a.example")
    (line,) = [line for line in caplog.messages if "refuses all requests" in line]
    assert line.startswith("a.example")
    assert scene.worker.leaves(scene.next) is None, "it leaves to be dropped"
    assert scene.waits_for() == pytest.approx(40)
    scene.worker.time.advance(41)
    assert not scene.worker.back_off.is_dropping("a.example")


@pytest.mark.event_loop
def test_one_probe_is_sent_however_a_host_is_written():
    scene = Probing("http://[0:0:0:0:0:0:0:1]:8000")
    scene.worker.time.advance(3)
    assert scene.waits_for() == math.inf
    scene.worker.answered(scene.probe)
    assert scene.waits_for() == 0


@pytest.mark.event_loop
def test_what_leaves_may_not_become_the_probe(worker):
    worker.sends(first := page(1))
    worker.answered(first, 429, 5)
    worker.time.advance(5.1)
    assert worker.leaves(page(2)) is None
    assert worker.leaves(page(3)) == (REFUSED, worker.time.now + 1)
    worker.time.advance(1)
    assert worker.leaves(page(3)) is None


@pytest.mark.event_loop
def test_a_worker_without_back_off_waits_for_the_lease_and_sends_no_probe(worker):
    other = worker.beside(REP_BACK_OFF_MAX=0)
    for each in (worker, other):
        each.knows_delay()
    worker.sends(first := page(1))
    worker.answered(first, 429, 10)
    assert other.sends(page(2)) is not None
    worker.time.advance(10.1)
    for number in (2, 3):
        sent = page(number)
        assert other.sends(sent) is None
        other.answered(sent)
        worker.time.advance(DELAY + 0.1)


@pytest.mark.event_loop
@pytest.mark.parametrize(
    ("age", "waits", "knows"),
    [(0.05, False, False), (0.15, False, True), (0.25, True, True)],
)
def test_a_request_waits_for_pauses_in_the_store_only_if_they_were_read_long_ago(age, waits, knows):
    worker = Worker()
    other = worker.beside()
    for each in (worker, other):
        each.knows_no_rules()
    other.reads_pauses()
    worker.sends(first := page(1))
    worker.answered(first, 429, 5)
    other.time.advance(age)
    assert (other.back_off.read_pauses() is not None) is waits
    settle()
    assert (other.sends(page(2)) is not None) is knows


@pytest.mark.event_loop
def test_the_time_in_which_a_host_was_not_asked_is_no_time_of_refusals():
    worker = Worker(REP_DEFER_TIMEOUT=5)
    other = worker.beside(REP_DEFER_TIMEOUT=5)
    for each in (worker, other):
        each.knows_no_rules()
    for number in (1, 2):
        sent = page(number)
        assert worker.sends(sent) is None
        worker.answered(sent, 429, 2)
        other.reads_pauses()
        for each in (worker, other):
            assert each.sends(page(3)) == (REFUSED, pytest.approx(worker.time.now + 2))
            assert not each.back_off.is_dropping("a.example")
        worker.time.advance(7.1)


@pytest.mark.event_loop
def test_refusals_before_another_worker_got_an_answer_do_not_count():
    worker = Worker(REP_DEFER_TIMEOUT=5)
    other = worker.beside(REP_DEFER_TIMEOUT=5)
    for each in (worker, other):
        each.knows_no_rules()
    for number, status in enumerate((429, 200, 429)):
        sent = page(number)
        assert worker.sends(sent) is None
        worker.answered(sent, status, 4)
        other.reads_pauses()
        worker.time.advance(0 if number == 2 else 4.1)
    assert other.sends(page(3)) == (REFUSED, pytest.approx(worker.time.now + 4))
    assert not other.back_off.is_dropping("a.example")


@pytest.mark.event_loop
def test_the_lease_of_a_probe_holds_up_no_turn_for_a_minute():
    worker = Worker()
    other = worker.beside()
    for each in (worker, other):
        each.knows_delay(delay=2)
    worker.sends(first := page(1))
    worker.answered(first, 429, 5)
    worker.time.advance(5.1)
    worker.sends(page(2))
    assert other.sends(page(3)) == ("the site has a delay", worker.time.now + 4)


@pytest.mark.event_loop
def test_hosts_that_nothing_waits_for_are_forgotten(monkeypatch):
    monkeypatch.setattr(back_off, "_MAX_HOSTS", 4)
    worker = Worker()

    def refuse(hosts):
        for number in hosts:
            request = page(1, f"http://{number}.example")
            worker.knows_no_rules(f"http://{number}.example")
            worker.sends(request)
            worker.answered(request, 429)

    refuse(range(32))
    assert len(worker.back_off.hosts) == 32
    worker.time.advance(60)
    refuse([32])
    assert list(worker.back_off.hosts) == ["32.example"]


@pytest.mark.event_loop
def test_what_is_no_page_begins_no_pause(worker):
    """As the response to an s3 URL."""
    request = scrapy.Request("s3://a.example/1")
    worker.sent_at[request] = 0.0
    worker.answered(request, 429, 5)
    assert not worker.back_off.hosts
