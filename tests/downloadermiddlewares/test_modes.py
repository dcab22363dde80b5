"""The three modes of Scrapy, each crawl in a process of its own; and peak memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import scrapy

from tests.crawling.crawl import SCRAPYS_QUEUE
from tests.crawling.web import answer, robots
from tests.fetch.faults import FAULTS, ON_THE_WIRE, RULES_TEXT, bomb

MODE_CRAWL = Path(__file__).parents[1] / "crawling" / "mode_crawl.py"
HAS_REACTORLESS = scrapy.version_info >= (2, 15)
MODES = [
    "asyncio",
    "select",
    pytest.param(
        "none",
        marks=pytest.mark.skipif(not HAS_REACTORLESS, reason="Scrapy before 2.15 needs a reactor"),
    ),
]
SLOWLY = [["wait", 0.5], *robots("User-agent: *\nDisallow: /\n")]
SLOWLY_ALLOWED = [["wait", 0.5], *robots("User-agent: *\nDisallow: /private\n")]
BURST = {"CONCURRENT_REQUESTS": 50, "CONCURRENT_REQUESTS_PER_DOMAIN": 50}
BUILTIN = {"ADDONS": {}, "ROBOTSTXT_OBEY": True}


def crawl(mode, urls, *, close_after=None, cancels=(), pause=None, **settings):
    order = {
        "mode": mode,
        "settings": settings,
        "urls": urls,
        "close_after": close_after,
        "cancels": cancels,
        "pause": pause,
    }
    run = subprocess.run(
        [sys.executable, str(MODE_CRAWL)],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    result["log"] = run.stderr
    return result


@pytest.mark.parametrize("mode", MODES)
def test_a_burst_of_requests_makes_one_fetch_and_nothing_gets_out(web, mode):
    site = web.site(SLOWLY)
    result = crawl(mode, [site.url(f"/{i}") for i in range(50)], **BURST)
    assert site.targets == []
    assert len(site.robots_requests) == 1
    assert list(result["dropped"].values()) == ["rule"] * 50
    assert result["log"] == ""


@pytest.mark.skipif(
    scrapy.version_info[:2] != (2, 19), reason="other versions may not have this bug"
)
def test_builtin_lets_most_of_a_burst_through(web):
    """What this project is for; it is told so in the README."""
    site = web.site(SLOWLY)
    crawl("asyncio", [site.url(f"/{i}") for i in range(50)], **BURST, **BUILTIN)
    assert len(site.targets) > 0


@pytest.mark.parametrize("mode", MODES)
def test_rules_errors_and_time_outs_in_every_mode(web, mode):
    rules = web.site(robots(RULES_TEXT))
    missing = web.site(answer(404))
    failing = web.site(answer(503))
    hanging = web.site([["wait", 30]])
    cut = web.site([["send", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser"], ["close"]])
    endless = web.site(
        [["send", "HTTP/1.1 200 OK\r\n\r\n" + RULES_TEXT], ["repeat", "#\n" * 5000, 10_000, 0]]
    )
    sites = [rules, missing, failing, hanging, cut, endless]
    urls = [site.url(path) for site in sites for path in ("/private", "/public")]
    result = crawl(mode, urls, REP_TIMEOUT=2, DOWNLOAD_TIMEOUT=15)
    assert [sorted(site.targets) for site in sites] == [
        ["/public"],
        ["/private", "/public"],
        [],
        [],
        [],
        ["/public"],
    ]
    assert len(result["failures"]) == len(result["dropped"]) == 8
    assert result["stats"]["finish_reason"] == "finished"


@pytest.mark.parametrize("mode", MODES)
def test_a_paused_crawl_begins_no_look_up_and_goes_on_afterwards(web, mode):
    """As Scrapy's downloader, it ends what it has: one fetch, and one whose turn is next."""
    sites = [web.site([["wait", 0.8], *robots(RULES_TEXT)]) for _ in range(4)]
    urls = [site.url(path) for site in sites for path in ("/public", "/private")]
    result = crawl(mode, urls, pause=3, REP_CONCURRENT_FETCHES=1)
    asked = sorted(site.robots_requests[0]["at"] for site in sites)
    assert [at > result["unpaused"] for at in asked] == [False, False, True, True]
    for site in sites:
        assert site.targets == ["/public"]
        assert len(site.robots_requests) == 1
    assert list(result["dropped"].values()) == ["rule"] * 4
    assert result["stats"]["finish_reason"] == "finished"


@pytest.mark.parametrize("mode", MODES)
def test_closing_while_robots_txt_hangs_in_every_mode(web, mode):
    site = web.site([["wait", 60]])
    urls = [site.url(f"/{i}") for i in range(5)]
    result = crawl(mode, urls, close_after=0.5, **SCRAPYS_QUEUE)
    assert list(result["dropped"].values()) == ["closing"] * 5
    assert result["stats"]["elapsed_time_seconds"] < 15
    assert result["log"] == ""
    result = crawl(mode, urls, close_after=0.5)
    assert result["failures"] == []
    assert result["stats"]["scheduler/enqueued"] == 5
    assert "scheduler/dequeued" not in result["stats"]
    assert result["stats"]["elapsed_time_seconds"] < 15
    assert result["log"] == ""


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


@pytest.mark.spec("M-2")
@pytest.mark.parametrize("mode", MODES)
def test_no_other_spelling_of_a_disallowed_page_reaches_the_wire(web, mode):
    """Whatever the download handler makes of a URL on its way, and whatever the site does."""
    site = web.site(robots("User-agent: *\nDisallow: /private\nDisallow: /a=b\n"))
    paths = [
        "/public/../private/1",
        "/public/%2e%2e/private/2",
        "/./private/3",
        "/%70rivate/4",
        "/a%3Db",
        "/public",
    ]
    crawl(mode, [site.url(path) for path in paths])
    # Sent as it is, /a%3Db is another page than /a=b; without a reactor it would be sent as that.
    other = {"/a%3Db"} if mode != "none" else set()
    assert set(site.targets) == {"/public"} | other


@pytest.mark.parametrize("mode", MODES)
def test_a_waiter_that_is_cancelled_in_every_mode(web, mode):
    site = web.site(SLOWLY_ALLOWED)
    front = web.site(robots(""))
    result = crawl(mode, [front.url("/")], cancels=[site.url("/1"), site.url("/2")])
    assert result["ends"] == ["CancelledError", "200"]
    assert "robotstxt/error_count" not in result["stats"]
    assert result["log"] == ""


@pytest.mark.parametrize("mode", MODES[1:])
def test_all_faults_in_one_crawl_in_the_other_modes(web, mode):
    """Each by itself with the asyncio reactor: test_faults.py."""
    faults = [f for f in FAULTS if not (f.settings or f.meta or f.attributes)]
    if mode == "none":
        faults = [fault for fault in faults if fault.name != "body longer than Content-Length"]
    sites = [web.site(*fault.robots, paths=fault.paths) for fault in faults]
    urls = [site.url(path) for site in sites for path in ("/private", "/public")]
    crawl(mode, urls, REP_TIMEOUT=10, REP_CONCURRENT_FETCHES=32, CONCURRENT_REQUESTS=64)
    pages = {"/private", "/public"}
    wrong = {
        fault.name: site.targets
        for fault, site in zip(faults, sites, strict=True)
        if sorted(pages & set(site.targets)) != ON_THE_WIRE[fault.asks]
    }
    assert wrong == {}


@pytest.mark.parametrize("mode", MODES)
def test_hanging_and_unreachable_origins_in_every_mode(web, mode):
    """Four places, six origins that hang, one that recovers, one that doesn't."""
    hanging = [web.site([["wait", 60]]) for _ in range(6)]
    rules = robots("User-agent: *\nDisallow: /private\nCrawl-delay: 0.1\n")
    healthy = web.site(rules)
    recovers = web.site(answer(503), answer(503), rules)
    fails = web.site(answer(503))
    paths = ("/1", "/private", "/3", "/4")
    sites = [*hanging, fails, recovers, healthy]
    result = crawl(
        mode,
        [site.url(path) for site in sites for path in paths],
        CONCURRENT_REQUESTS=4,
        REP_TIMEOUT=2,
        REP_UNREACHABLE_ACTION="defer",
        REP_RETRY_DELAY=0.5,
        REP_RETRY_DELAY_MAX=0.5,
        REP_DEFER_TIMEOUT=3,
    )
    for site in (recovers, healthy):
        assert sorted(site.targets) == ["/1", "/3", "/4"]
        times = sorted(e["at"] for e in site.journal if e["target"] != "/robots.txt")
        assert times[-1] - times[0] > 0.18
    for site in (*hanging, fails):
        assert site.targets == []
    reasons = sorted(result["dropped"].values())
    assert reasons == ["rule"] * 2 + ["unreachable"] * 28
    # On a machine that is busy even the healthy one may once be too late.
    assert result["stats"]["robotstxt/deferred"] in {8, 9}
    assert result["stats"]["robotstxt/deferred_dropped"] == 28
    assert result["stats"]["finish_reason"] == "finished"
    assert result["log"] == ""
