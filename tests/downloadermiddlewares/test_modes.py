"""The three modes of Scrapy, each crawl in a process of its own; and peak memory."""

import sys

import pytest
import scrapy

from tests.crawling.crawl import SCRAPYS_QUEUE
from tests.crawling.process import MODES, CrawlProcess
from tests.crawling.web import HANGS, answer, held, robots
from tests.fetch.faults import FAULTS, ON_THE_WIRE, RULES_TEXT, bomb
from tests.waiting import wait_until

DEFERRED = 3600


def crawl(mode, urls, *, meanwhile=lambda process: None, **order):
    """Crawl in a process of its own, and talk with it in ``meanwhile``."""
    process = CrawlProcess(mode, urls, **order)
    meanwhile(process)
    return process.result()


def asked(site):
    wait_until(lambda: site.robots_requests)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("delay", "many", "ends", "sent"), [(300, 300, "RobotsTxtDisallowed", 0), (0.3, 5, "200", 5)]
)
def test_what_a_callback_waits_for_gets_a_turn_that_is_near_as_the_crawl_closes(
    web, mode, delay, many, ends, sent
):
    site = web.site(robots(f"User-agent: *\nCrawl-delay: {delay}\n"))
    media = [site.url(f"/{n}") for n in range(many)]
    result = crawl(mode, [site.url("/")], cancels=media, script=[["asked"], ["close"]])
    assert result["ends"] == [ends] * many
    assert sorted(site.targets) == ["/", *(f"/{n}" for n in range(sent))]
    assert result["log"] == ""


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_crawl_begins_no_look_up_and_goes_on_afterwards(web, mode):
    """As Scrapy's downloader, it ends what it has begun, and what would be next.

    How many that are is up to the time it takes: a lookup that is slow leaves its place to another.
    """
    sites = [web.site(held(robots(RULES_TEXT))) for _ in range(20)]
    urls = [site.url(path) for site in sites for path in ("/public", "/private")]
    begun = []

    def meanwhile(process):
        process.hear("paused")
        for site in sites:
            site.release()
        process.hear("nothing is looked up")
        begun.extend(site for site in sites if site.robots_requests)
        process.tell("go on")

    result = crawl(
        mode,
        urls,
        script=[
            ["stats", {"scheduler/enqueued": len(urls), "robotstxt/request_count": 1}],
            ["pause"],
            ["say", "paused"],
            ["no flights"],
            ["say", "nothing is looked up"],
            ["hear", "go on"],
            ["unpause"],
        ],
        meanwhile=meanwhile,
        REP_CONCURRENT_FETCHES=1,
    )
    assert 1 <= len(begun) < len(sites)
    for site in sites:
        assert site.targets == ["/public"]
        assert len(site.robots_requests) == 1
    assert list(result["dropped"].values()) == ["rule"] * len(sites)
    assert result["stats"]["finish_reason"] == "finished"


@pytest.mark.parametrize("mode", MODES)
def test_closing_while_robots_txt_hangs_in_every_mode(web, mode):
    site = web.site(HANGS)
    urls = [site.url(f"/{i}") for i in range(5)]

    def closed(counted, **settings):
        before = len(site.robots_requests)

        def meanwhile(process):
            wait_until(lambda: len(site.robots_requests) > before)
            process.tell("close")

        script = [["stats", {counted: 5}], ["hear", "close"], ["close"]]
        result = crawl(mode, urls, script=script, meanwhile=meanwhile, **settings)
        # Else it has waited until its time was over.
        assert "robotstxt/outcome_count/unreachable" not in result["stats"]
        assert result["log"] == ""
        return result

    result = closed("robotstxt/waited", **SCRAPYS_QUEUE)
    assert list(result["dropped"].values()) == ["closing"] * 5
    result = closed("scheduler/enqueued")
    assert result["failures"] == []
    assert result["stats"]["scheduler/enqueued"] == 5
    assert "scheduler/dequeued" not in result["stats"]


@pytest.mark.spec("F-13")
@pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")
@pytest.mark.parametrize("mode", MODES)
def test_peak_memory_of_bomb_and_endless_stream(web, mode):
    plain = web.site(robots(RULES_TEXT))
    bombed = web.site(answer(200, bomb(), headers={"Content-Encoding": "gzip"}))
    endless = web.site(
        [["send", "HTTP/1.1 200 OK\r\n\r\n" + RULES_TEXT], ["repeat", "#\n" * 50_000, 10_000, 0]]
    )
    usual = crawl(mode, [plain.url("/private")])["peak_kib"]
    for site in (bombed, endless):
        result = crawl(mode, [site.url("/private")])
        print(f"{mode}: {(result['peak_kib'] - usual) / 1024:.1f} MiB above a plain robots.txt")
        assert list(result["dropped"].values()) == ["rule"]
        assert result["peak_kib"] - usual <= 32 * 1024


@pytest.mark.parametrize("mode", MODES)
def test_a_waiter_that_is_cancelled_in_every_mode(web, mode):
    site = web.site(held(robots(RULES_TEXT)))
    front = web.site(robots(""))

    def meanwhile(process):
        asked(site)
        process.tell("cancel")
        process.hear("cancelled")
        site.release()

    result = crawl(
        mode,
        [front.url("/")],
        cancels=[site.url("/1"), site.url("/2")],
        script=[
            ["stats", {"robotstxt/waited": 2}],
            ["hear", "cancel"],
            ["cancel"],
            ["say", "cancelled"],
        ],
        meanwhile=meanwhile,
    )
    assert result["ends"] == ["CancelledError", "200"]
    assert len(site.robots_requests) == 1
    assert "robotstxt/error_count" not in result["stats"]
    assert result["log"] == ""


@pytest.mark.parametrize("mode", MODES)
def test_ctrl_c_twice_while_robots_txt_is_looked_up(web, mode):
    site = web.site(held(robots("User-agent: *\nDisallow: /\n")))

    def meanwhile(process):
        asked(site)
        process.tell("asked")

    script = [["hear", "asked"], ["interrupt"], ["interrupt"]]
    result = crawl(mode, [site.url("/")], script=script, meanwhile=meanwhile)
    assert result["fetched"] == []
    assert result["log"] == ""


# What the download handler without a reactor takes for an error, so that nothing is fetched.
OF_HTTPX = {"body longer than Content-Length"}
if scrapy.version_info < (2, 18):
    OF_HTTPX |= {"Location broken", "Location of data", "Location of javascript"}


@pytest.mark.parametrize("mode", MODES[1:])
def test_all_faults_in_one_crawl_in_the_other_modes(web, mode):
    """Each by itself with the asyncio reactor: test_faults.py."""
    faults = [f for f in FAULTS if not (f.settings or f.meta or f.attributes)]
    if mode == "none":
        faults = [fault for fault in faults if fault.name not in OF_HTTPX]
    sites = [web.site(*fault.robots, paths=fault.paths) for fault in faults]
    urls = [site.url(path) for site in sites for path in ("/private", "/public")]
    crawl(mode, urls, REP_CONCURRENT_FETCHES=32, CONCURRENT_REQUESTS=64)
    pages = {"/private", "/public"}
    wrong = {
        fault.name: site.targets
        for fault, site in zip(faults, sites, strict=True)
        if sorted(pages & set(site.targets)) != ON_THE_WIRE[fault.asks]
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("mode", "handler"),
    [("asyncio", "_httpx.HttpxDownloadHandler"), ("none", "_aiohttp.AiohttpDownloadHandler")],
)
def test_sites_that_hang_take_no_connection_of_the_others(web, mode, handler):
    """These handlers have a pool of CONCURRENT_REQUESTS connections, some of them for each host."""
    path = f"scrapy.core.downloader.handlers.{handler}"
    # Scrapy 2.14 has none of these.
    pytest.importorskip(path.rpartition(".")[0])
    hanging = [web.site(HANGS) for _ in range(3)]
    healthy = web.site(robots(RULES_TEXT))

    def meanwhile(process):
        for site in hanging:
            asked(site)
        process.tell("all hang")

    result = crawl(
        mode,
        [*(site.url() for site in hanging), healthy.url("/1"), healthy.url("/private")],
        script=[
            ["hear", "all hang"],
            ["stats", {"response_received_count": 1, "robotstxt/forbidden": 1}],
            ["close"],
        ],
        meanwhile=meanwhile,
        DOWNLOAD_HANDLERS={"http": path, "https": path},
        CONCURRENT_REQUESTS=2,
    )
    assert healthy.targets == ["/1"]
    assert result["dropped"] == {healthy.url("/private"): "rule"}
    assert result["log"] == ""


@pytest.mark.parametrize("mode", MODES)
def test_hanging_and_unreachable_origins_in_every_mode(web, mode):
    """Four places, six origins that hang, one that recovers, one that doesn't."""
    hanging = [web.site(HANGS) for _ in range(6)]
    rules = robots("User-agent: *\nDisallow: /private\nCrawl-delay: 0.1\n")
    healthy = web.site(rules)
    recovers = web.site(answer(503), answer(503), rules)
    fails = web.site(answer(503))
    paths = ("/1", "/private", "/3", "/4")
    sites = [*hanging, fails, recovers, healthy]
    result = crawl(
        mode,
        [site.url(path) for site in sites for path in paths],
        # What is unreachable stays so until all the others have been fetched.
        script=[
            ["stats", {"response_received_count": 6}],
            ["deferred", 7],
            ["advance", DEFERRED],
        ],
        CONCURRENT_REQUESTS=4,
        REP_TIMEOUT=2,
        REP_RETRY_DELAY=0.5,
        REP_RETRY_DELAY_MAX=0.5,
        REP_DEFER_TIMEOUT=DEFERRED,
    )
    for site in (recovers, healthy):
        assert sorted(site.targets) == ["/1", "/3", "/4"]
    assert result["stats"]["robotstxt/turns"] >= 6
    for site in (*hanging, fails):
        assert site.targets == []
    assert sorted(result["dropped"].values()) == ["rule"] * 2 + ["unreachable"] * 28
    assert result["stats"]["robotstxt/deferred"] == 28 + 4
    assert result["stats"]["robotstxt/deferred_dropped"] == 28
    assert result["stats"]["finish_reason"] == "finished"
    assert result["log"] == ""
