"""What spiders and extensions hear of robots.txt: meta, signals, and the API."""

import gc
import json
import weakref

import pytest
import scrapy

from scrapy_rep import Robots, signals
from scrapy_rep.utils.per_crawl import add_part
from tests.crawling.crawl import ListSpider, crawl
from tests.crawling.web import answer, redirect, robots

RULES = (
    "User-agent: *\nDisallow: /private\nAllow: /private/open\nSitemap: https://a.example/s.xml\n"
)


class Ear:
    """Hears signals, as (name, what came with it)."""

    def __init__(self, *names):
        self.names = names
        self.heard = []

    def listen(self, crawler):
        # Kept, as signals hold their receivers weakly.
        self.receivers = [self.receiver(name) for name in self.names]
        for name, receiver in zip(self.names, self.receivers, strict=True):
            crawler.signals.connect(receiver, getattr(signals, name))

    def receiver(self, name):
        def receive(signal, sender, **what):
            self.heard.append((name, what))

        return receive


async def test_meta_holds_the_verdict_as_plain_values(web):
    site = web.site(robots(RULES))
    urls = [site.url(path) for path in ("/", "/private/open", "/private")]
    result = await crawl(*urls)
    metas = {r.url: r.meta["robotstxt"] for r in result.responses}
    metas |= {f.request.url: f.request.meta["robotstxt"] for f in result.failures}
    reached = {"cause": None, "unreachable_since": None, "next_try": None}
    assert metas == {
        urls[0]: {"allowed": True, "reason": "no-rule", "rule": None, "line": None} | reached,
        urls[1]: {"allowed": True, "reason": "rule", "rule": "/private/open", "line": 3} | reached,
        urls[2]: {"allowed": False, "reason": "rule", "rule": "/private", "line": 2} | reached,
    }
    assert json.loads(json.dumps(metas)) == metas
    assert {type(meta["reason"]) for meta in metas.values()} == {str}


async def test_meta_of_another_page_does_not_stay(web):
    site = web.site(robots(RULES))
    old = {"robotstxt": {"allowed": False}}
    asked = scrapy.Request(site.url("/a"), meta=old)
    not_asked = scrapy.Request(site.url("/b"), meta={"dont_obey_robotstxt": True, **old})
    result = await crawl(asked, not_asked, scrapy.Request("data:,x", meta=old))
    metas = {response.url: response.meta.get("robotstxt") for response in result.responses}
    assert metas[site.url("/a")]["allowed"] is True
    assert metas[site.url("/b")] == {"exempt": True}
    assert metas["data:,x"] is None


async def test_signals_tell_verdicts_drops_and_fetches(web):
    site = web.site(robots(RULES))
    ear = Ear("robotstxt_verdict", "robotstxt_forbidden", "robotstxt_fetched")
    await crawl(site.url("/"), site.url("/private"), opened=ear.listen)
    verdicts = {w["request"].url: w["verdict"] for n, w in ear.heard if n == "robotstxt_verdict"}
    assert {url: verdict.allowed for url, verdict in verdicts.items()} == {
        site.url("/"): True,
        site.url("/private"): False,
    }
    assert {v.robotstxt_url for v in verdicts.values()} == {site.url("/robots.txt")}
    (forbidden,) = [w for n, w in ear.heard if n == "robotstxt_forbidden"]
    assert forbidden == {
        "request": forbidden["request"],
        "verdict": verdicts[site.url("/private")],
        "dropped": True,
    }
    (fetched,) = [w for n, w in ear.heard if n == "robotstxt_fetched"]
    assert str(fetched["origin"]) == site.url("")
    assert fetched["outcome"].body == RULES.encode()
    assert fetched["record"].last is fetched["outcome"]
    assert (fetched["previous"], fetched["stored"]) == (None, False)


async def test_a_record_of_the_store_is_told_as_such(web, tmp_path):
    site = web.site(robots(RULES))
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    ear = Ear("robotstxt_fetched")
    for _ in range(2):
        await crawl(site.url("/"), settings=settings, opened=ear.listen)
    (_, first), (_, second) = ear.heard
    assert (first["stored"], second["stored"]) == (False, True)
    assert second["previous"] == second["record"] == first["record"]
    assert second["outcome"].body == RULES.encode()


async def test_a_fetch_comes_with_the_record_before_it(web, clock):
    site = web.site(robots(RULES), answer(404))
    ear = Ear("robotstxt_fetched")
    await crawl(site.url("/1"), phases=[clock.later(1_000_000, site.url("/2"))], opened=ear.listen)
    first, second = [what for _, what in ear.heard]
    assert second["previous"].copy.body == first["record"].copy.body == RULES.encode()
    assert second["record"].copy is None


class AskingSpider(ListSpider):
    """Asks of each of its URLs, and fetches none."""

    async def start(self):
        robots = Robots.of(self.crawler)
        self.crawl.before = [robots.known_verdict(url) for url in self.requests]
        self.crawl.verdicts = [await robots.verdict(url) for url in self.requests]
        self.crawl.known = [robots.known_verdict(url) for url in self.requests]
        self.crawl.sitemaps = [await robots.sitemaps(url) for url in self.requests]
        self.crawl.records = [await robots.record(url) for url in self.requests]
        self.crawl.tokens = robots.tokens(self.requests[0])
        for request in ():
            yield request


async def test_spiders_ask_without_an_extra_fetch(web):
    rules, missing, failing = web.site(robots(RULES)), web.site(answer(404)), web.site(answer(503))
    moved = web.site(redirect(rules.url("/robots.txt")))
    urls = [moved.url("/private"), rules.url("/"), missing.url("/private"), failing.url("/")]
    result = await crawl(*urls, spidercls=AskingSpider)
    assert result.before == [None] * 4
    reasons = [verdict.reason.value for verdict in result.verdicts]
    assert reasons == ["rule", "no-rule", "unavailable", "unreachable"]
    assert result.verdicts[0].robotstxt_url == moved.url("/robots.txt")
    assert result.known == result.verdicts
    assert result.sitemaps == [["https://a.example/s.xml"]] * 2 + [[]] * 2
    assert [r.last.evidence.status for r in result.records] == [200, 200, 404, 503]
    assert result.tokens == ("testbot",)
    assert [len(site.robots_requests) for site in (moved, rules, missing, failing)] == [1, 1, 1, 1]
    assert rules.targets == []


async def test_a_crawl_that_does_not_obey_has_nobody_to_ask():
    def opened(crawler):
        with pytest.raises(LookupError, match="RobotsTxtMiddleware"):
            Robots.of(crawler)

    await crawl(settings={"ROBOTSTXT_OBEY": False}, opened=opened)


def test_a_crawl_that_has_ended_is_let_go_of():
    class Thing:
        pass

    crawler, keeper = Thing(), Thing()
    keeper.crawler = crawler
    add_part(crawler, Robots(keeper, None, None, None))
    assert isinstance(Robots.of(crawler), Robots)
    gone = weakref.ref(crawler)
    del crawler, keeper
    gc.collect()
    assert gone() is None
