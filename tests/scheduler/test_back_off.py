"""Back-off after 429 and 503, in real crawls."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest
import pytest_twisted
import scrapy
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import Robots
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler import back_off
from scrapy_rep.scheduler.back_off import BackOff
from scrapy_rep.scheduler.pauses import Pauses
from scrapy_rep.settings import Options
from scrapy_rep.stores.memory import MemoryStore
from tests.crawling.crawl import crawl, stat
from tests.crawling.web import answer, held, robots
from tests.made_up_time import MadeUpTime
from tests.waiting import settle, until

PAGES = [f"/{number}" for number in range(6)]
OK = answer(200, "x")


def refuses(status=429, retry_after=None, **more):
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return answer(status, headers={**headers, **more})


async def crawled(site, **settings):
    return await crawl(*map(site.url, PAGES), settings={"RETRY_TIMES": 0, **settings})


def told(result):
    return [line for line in result.messages() if "no requests for" in line]


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


@pytest_twisted.ensureDeferred
async def test_the_report_tells_for_how_long_a_site_was_left_alone(web, tmp_path):
    site = web.site(answer(404), paths={"/0": [refuses(429, "0.5"), OK]})
    pages = {"json": tmp_path / "report.json", "html": tmp_path / "report.html"}
    for path in pages.values():
        site.change(answer(404), paths={"/0": [refuses(429, "1"), OK]})
        await crawl(site.url("/0"), settings={"REP_REPORT": str(path)})
    (row,) = json.loads(pages["json"].read_text())["origins"]
    assert (row["back_offs"], row["back_off_seconds"]) == (1, 1.0)
    assert "Sites that refused requests" in pages["html"].read_text()


@pytest_twisted.ensureDeferred
async def test_one_request_tells_whether_the_others_may_follow(web):
    site = web.site(answer(404), paths={"*": [refuses()] * 9 + [OK]})
    result = await crawled(site, REP_BACK_OFF_MAX=0.05, RETRY_TIMES=9)
    # Six were under way at most; then one by one until one is answered.
    assert result.stats["downloader/response_status_count/200"] == len(PAGES)
    assert result.stats["robotstxt/back_off"] >= 10 - len(PAGES)


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_if_the_one_request_gets_no_response_another_one_is_sent(web):
    site = web.site(answer(404), paths={"/0": [refuses(429, "1")], "/1": [[["close"]]], "*": [OK]})
    settings = {"CONCURRENT_REQUESTS": 1, "RETRY_ENABLED": False, "REP_DEFER_TIMEOUT": 20}
    result = await crawled(site, **settings)
    assert sorted(set(site.targets)) == PAGES
    assert result.stats["downloader/response_status_count/200"] == len(PAGES) - 2


@pytest_twisted.ensureDeferred
async def test_if_the_one_request_gets_no_response_the_others_do_not_wait_for_one_another(web):
    pages = {"/0": [refuses(429, "1")], "/1": [[["close"]]], "*": [held(OK)]}
    site = web.site(answer(404), paths=pages)

    def others(response):
        urls = [site.url(f"/{number}") for number in range(1, 6)]
        requests = [scrapy.Request(url, priority=-n) for n, url in enumerate(urls)]
        return requests if response.url == site.url("/0") else ()

    async def release(crawler):
        await until(lambda: len(set(site.targets)) == 6)
        site.release()

    settings = {"RETRY_ENABLED": False}
    result = await crawl(site.url("/0"), settings=settings, then=others, meanwhile=release)
    assert result.stats["downloader/response_status_count/200"] == 4


@pytest_twisted.ensureDeferred
async def test_a_success_ends_the_doubling(web):
    pages = {path: [refuses(), OK] for path in ("/0", "/3")}
    site = web.site(answer(404), paths=pages)
    settings = {"CONCURRENT_REQUESTS": 1, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    result = await crawled(site, RETRY_TIMES=1, **settings)
    seconds = [float(line.split(" for ")[1].split()[0]) for line in told(result)]
    assert len(seconds) == 2
    assert max(seconds) <= 1.25


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("name", ["X-Squid-Error", "Proxy-Authenticate", "Zyte-Error"])
async def test_what_a_proxy_says_of_itself_is_not_the_sites(web, name):
    proxy = web.site(answer(404), paths={"*": [refuses(429, "2", **{name: "ERR_LIMIT 0"})]})
    meta = {"proxy": proxy.url("")}
    requests = [scrapy.Request(f"http://site.example{path}", meta=meta) for path in PAGES]
    result = await crawl(*requests, settings={"RETRY_TIMES": 0})
    assert "robotstxt/back_off" not in result.stats
    assert len(proxy.targets) >= len(PAGES)


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


@pytest_twisted.ensureDeferred
async def test_it_is_told_what_waits_and_until_when(web):
    site = web.site(answer(404), paths={path: [refuses(429, "2"), OK] for path in PAGES})
    waits = []

    async def look(crawler):
        waits.extend(await until(lambda: Robots.of(crawler).waits()))

    await crawl(*map(site.url, PAGES), settings={"REP_BACK_OFF_MAX": 0.5}, meanwhile=look)
    assert {(wait.origin, wait.reason) for wait in waits} <= {
        (site.url(""), "the site answered 429 or 503"),
        (site.url(""), "robots.txt is being looked up"),
    }


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("scheme", ["sqlite", "redis"])
async def test_workers_of_a_fleet_wait_for_each_other(web, tmp_path, redis_server, scheme):
    paths = {"*": [refuses(429, "3600")]}
    site = web.site(answer(404), paths=paths)
    uri = redis_server.uri if scheme == "redis" else f"sqlite:///{tmp_path / 'robots.sqlite'}"
    settings = {"REP_STORE": uri, "REP_DEFER_TIMEOUT": 0.5, "REP_BACK_OFF_MAX": 100}
    await crawled(site, **settings)
    sent = len(site.targets)
    # The second worker learns by its first request that another waits for longer than it would.
    site.change(paths={"*": [refuses(429, "1")]})
    result = await crawl(site.url("/0"), settings={**settings, "RETRY_TIMES": 5})
    assert len(site.targets) == sent + 1
    assert result.stats["robotstxt/back_off_dropped"] == 1


@pytest.mark.parametrize(
    ("holder", "left"),
    [("1e400", 300), ("4e9", 300), ("1000000005", 5), ("nan", None), ("", None), ("name", None)],
)
def test_what_others_have_written_bounds_nothing(holder, left):
    assert Pauses(None, MadeUpTime().clock, 300)._seconds_left(holder) == left


@pytest_twisted.ensureDeferred
async def test_what_is_dropped_takes_no_turns(web):
    paths = {"*": [refuses(429, "31536000")]}
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.2"), paths=paths)
    result = await crawled(site, REP_DEFER_TIMEOUT=0.5, RETRY_TIMES=100)
    assert result.stats["robotstxt/back_off_dropped"] == len(PAGES)
    assert result.stats["robotstxt/turns"] < len(PAGES)


@pytest_twisted.ensureDeferred
async def test_disallowed_requests_are_not_sent_to_ask(web, monkeypatch):
    paths = {"/0": [refuses(), OK]}
    site = web.site(robots("User-agent: *\nDisallow: /no/"), paths=paths)
    popped, asks = BackOff.use_probe, []

    def note(back_off, host):
        if back_off.has_refused(host):
            asks.append(host)
        popped(back_off, host)

    monkeypatch.setattr(BackOff, "use_probe", note)

    async def feed(crawler):
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for number in range(3):
            request = scrapy.Request(site.url(f"/no/{number}"), priority=1)
            crawler.engine.crawl(crawler.spider.prepare(request))

    result = await crawl(site.url("/0"), meanwhile=feed)
    assert site.targets == ["/0", "/0"]
    assert result.stats["robotstxt/forbidden"] == 3
    assert len(asks) == 1


def alone(time, *, options=None, runs_tasks=False, **downloader):
    """Return a part without a crawl."""
    downloader = {"active": set(), "slots": {}, "domain_concurrency": 8, **downloader}
    downloader["get_slot_key"] = lambda _: "a.example"
    crawler = SimpleNamespace(
        engine=SimpleNamespace(downloader=SimpleNamespace(**downloader)),
        signals=SimpleNamespace(connect=lambda *_: None, send_catch_log=lambda *_, **__: []),
        stats=SimpleNamespace(inc_value=lambda *_, **__: None),
        spider=None,
    )
    store = MemoryStore(max_bytes=10, max_size=10, clock=lambda: time.now)
    pauses = Pauses(store, time.clock, 300)
    part = BackOff(crawler, options or Options(), pauses, time.clock)
    if not runs_tasks:
        part._start_task = lambda call: call.close()
    return part


def refused(request, seconds):
    return Response(request.url, status=429, headers={"Retry-After": str(seconds)})


class Probing:
    """A host that has refused a request; another one is under way, and a third is the probe."""

    def __init__(self, site="http://a.example", **more):
        self.time = MadeUpTime()
        self.first, self.late, self.probe = (scrapy.Request(f"{site}/{n}") for n in range(3))
        self.origin = origin_of(site)
        active = {self.first, self.late}
        slots = {"a.example": SimpleNamespace(active=active)}
        self.part = alone(self.time, runs_tasks=True, active=active, slots=slots, **more)
        self.part._response_downloaded(refused(self.first, 1), self.first)
        settle()
        active.remove(self.first)
        self.time.advance(1.1)
        assert self.leaves()
        self.part.use_probe(self.origin.host)
        active.add(self.probe)
        self.part._request_reached_downloader(self.probe)

    def leaves(self):
        """Whether a request may leave, after a claim if one is necessary."""
        self.part.hold(self.origin)
        settle()
        return self.part.hold(self.origin) is None

    def ends(self, request, response):
        self.part._response_downloaded(response, request)
        self.part._request_left_downloader(request)
        settle()


@pytest.mark.event_loop
@pytest.mark.parametrize("answered", [True, False])
def test_a_longer_pause_that_is_asked_for_late_holds(answered):
    scene = Probing()
    scene.ends(scene.late, refused(scene.late, 10))
    scene.time.advance(0.5)
    probed = Response(scene.probe.url) if answered else refused(scene.probe, 3)
    scene.ends(scene.probe, probed)
    for _ in range(18):
        assert not scene.leaves()
        scene.time.advance(0.5)
    scene.time.advance(0.6)
    assert scene.leaves()


@pytest.mark.event_loop
def test_a_longer_pause_holds_if_the_probe_gets_no_response():
    scene = Probing()
    scene.ends(scene.late, refused(scene.late, 10))
    scene.part._request_left_downloader(scene.probe)
    settle()
    assert not scene.leaves()
    scene.time.advance(10.1)
    assert scene.leaves()


@pytest.mark.event_loop
def test_a_longer_pause_holds_while_a_probe_may_leave():
    time = MadeUpTime()
    first, late = (scrapy.Request(f"http://a.example/{n}") for n in range(2))
    active = {first, late}
    slots = {"a.example": SimpleNamespace(active=active)}
    part = alone(time, runs_tasks=True, active=active, slots=slots)
    origin = origin_of(first.url)
    part._response_downloaded(refused(first, 1), first)
    settle()
    time.advance(1.1)
    part.hold(origin)  # the claim of the probe is under way
    part._response_downloaded(refused(late, 10), late)
    settle()
    assert part.hold(origin).until == pytest.approx(time.now + 10, abs=0.05)


@pytest.mark.event_loop
def test_a_longer_pause_may_be_too_long(caplog):
    scene = Probing(options=Options.from_settings({"REP_DEFER_TIMEOUT": 5}))
    scene.ends(scene.late, refused(scene.late, 40))
    assert scene.part.is_dropping("a.example")
    (line,) = [line for line in caplog.messages if "refuses all requests" in line]
    assert line.startswith("a.example")


@pytest.mark.skipif(
    "[" not in scrapy.Request("http://[::1]/").url,
    reason="w3lib before 2.4.1 removes the brackets of an IPv6 address",
)
@pytest.mark.event_loop
def test_one_probe_is_sent_however_a_host_is_written():
    scene = Probing("http://[0:0:0:0:0:0:0:1]:8000")
    scene.time.advance(3)
    assert not scene.leaves()
    scene.ends(scene.probe, Response(scene.probe.url))
    assert scene.leaves()


@pytest.mark.event_loop
@pytest.mark.parametrize("seconds", [(5, 20), (20, 5)])
def test_the_fleet_is_told_of_the_longest_pause(seconds):
    time = MadeUpTime()
    store = MemoryStore(max_bytes=10, max_size=10, clock=lambda: time.now)
    workers = [Pauses(store, time.clock, 300) for _ in range(3)]
    lefts = []

    async def pause():
        for worker, each in zip(workers, seconds, strict=False):
            lefts.append(await worker.store("a.example", each))
        time.advance(6)
        lefts.append((await workers[2].claim("a.example")).left)

    deferred_from_coro(pause())
    settle()
    assert lefts == [pytest.approx(each, abs=0.01) for each in (seconds[0], 20, 14)]


@pytest.mark.event_loop
def test_a_worker_tells_the_fleet_of_a_longer_pause():
    scene = Probing()
    scene.ends(scene.late, refused(scene.late, 10))
    untils = []
    deferred_from_coro(scene.part._pauses.end_of("a.example")).addCallback(untils.append)
    settle()
    assert untils == [pytest.approx(scene.time.wall + 10, abs=0.05)]


def test_hosts_that_nothing_waits_for_are_forgotten(monkeypatch):
    monkeypatch.setattr(back_off, "_MAX_HOSTS", 4)
    time = MadeUpTime()
    part = alone(time)
    part._forget_above = 4
    looks = []

    def refuse(hosts):
        for number in hosts:
            request = scrapy.Request(f"http://{number}.example")
            before = part._hosts
            part._response_downloaded(Response(request.url, status=429), request)
            looks.append(part._hosts is not before)

    refuse(range(32))
    assert len(part._hosts) == 32
    # All of them stay: the more there are, the less often it is looked.
    assert sum(looks) == 3
    time.advance(60)
    refuse([32])
    assert list(part._hosts) == ["32.example"]


def test_a_page_that_began_before_a_site_refused_does_not_tell_that_it_answers():
    time = MadeUpTime()
    slow, quick, new = (scrapy.Request(f"http://a.example/{name}") for name in range(3))
    slot = SimpleNamespace(active={slow, quick})
    part = alone(time, active={slow, quick}, slots={"a.example": slot})
    part._response_downloaded(refused(quick, 5), quick)
    time.advance(6)
    part._request_reached_downloader(new)
    # Its headers came at once, and its end now.
    slow.meta["download_latency"] = 0.1
    part._response_downloaded(Response(slow.url), slow)
    assert part.has_refused("a.example")
    part._response_downloaded(Response(new.url), new)
    assert not part.has_refused("a.example")


class Dropping:
    """A middleware that drops what some other has let pass."""

    def process_request(self, request):
        if "/no/" in request.url:
            raise IgnoreRequest


@pytest_twisted.ensureDeferred
async def test_what_others_drop_does_not_ask_for_long(web, monkeypatch):
    monkeypatch.setattr(back_off, "_CHECK_INTERVAL", 3600.0)
    site = web.site(answer(404), paths={"/0": [refuses(), OK]})

    async def feed(crawler):
        await until(lambda: stat(crawler, "robotstxt/back_off"))
        for number in range(3):
            request = scrapy.Request(site.url(f"/no/{number}"), priority=1)
            crawler.engine.crawl(crawler.spider.prepare(request))

    middlewares = {Dropping: 600}
    await crawl(site.url("/0"), meanwhile=feed, settings={"DOWNLOADER_MIDDLEWARES": middlewares})
    assert site.targets == ["/0", "/0"]


def test_who_may_ask_asks_again_where_the_turn_comes_late():
    time = MadeUpTime()
    part = alone(time)
    begun = []
    part._start_task = begun.append
    request = scrapy.Request("http://a.example")
    origin = origin_of(request.url)
    part._response_downloaded(refused(request, 5), request)
    time.advance(6)
    for _ in range(2):
        assert part.hold(origin) is not None
        asks = begun.pop()
        with pytest.raises(StopIteration):
            asks.send(None)
        assert part.hold(origin) is None
        time.advance(20)
    assert part.hold(origin) is not None
    for call in begun:
        call.close()
