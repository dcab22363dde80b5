"""News of origins that are back or gone, over a real Redis: from worker to worker."""

from __future__ import annotations

import logging

import pytest
import scrapy
from scrapy.settings import Settings

from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.shared import Shared
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.policy import Access, Grant
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.settings import Options
from tests.crawling.process import CrawlProcess
from tests.crawling.web import answer, robots
from tests.redis_deployments import Cluster, Sentinels
from tests.redis_server import RedisServer, needs_redis
from tests.running import in_asyncio
from tests.stores.records import ORIGIN, unreachable
from tests.waiting import PATIENCE, a_while, until, wait_until

LONG = 36_000
RULES = robots("User-agent: *\nDisallow: /private\n")
CHANNEL = "robots:news"
A = origin_of(ORIGIN)
OTHER_MODE = "none" if scrapy.version_info >= (2, 15) else "select"
SCRAPY_REDIS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "SCHEDULER_QUEUE_CLASS": "scrapy_rep.RobotsAwareRedisQueue",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
    "SCHEDULER_PERSIST": True,
}


def news_of(uri):
    from scrapy_rep.stores.redis_news import RedisNews

    return RedisNews(uri, prefix="robots:", timeout=PATIENCE)


async def tell_until(tell, condition):
    """Tell again and again, as nobody knows when the others are listening."""
    while not condition():
        await tell()
        await a_while()


@pytest.mark.parametrize(
    ("mode", "queue"), [("asyncio", {}), ("select", {}), (OTHER_MODE, SCRAPY_REDIS)]
)
def test_requests_leave_when_another_worker_finds_their_site_back(redis_server, web, mode, queue):
    client = redis_server.client
    client.flushall()
    site = web.site(answer(503))
    settings = {
        "REP_STORE": redis_server.uri,
        "REP_UNREACHABLE_ACTION": "defer",
        "REP_DEFER_TIMEOUT": LONG,
        "REP_RETRY_DELAY_MAX": LONG,
        "REP_STORE_TIMEOUT": PATIENCE,
        **({**queue, "REDIS_URL": redis_server.uri} if queue else {}),
    }
    deferred = [["stats", {"robotstxt/store/found": 0}], ["say", "here"]]
    urls = [site.url("/1"), site.url("/private")]
    first = CrawlProcess(mode, urls, **settings, REP_RETRY_DELAY=LONG, script=deferred)
    try:
        first.hear("here")
        wait_until(lambda: client.exists(f"robots:record:{{{site.url('')}}}"))
        wait_until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 1)
        site.change(RULES)
        # The next try is hours off; a crawl that begins later tries once more.
        other = {**settings, "SCHEDULER": "scrapy.core.scheduler.Scheduler"}
        CrawlProcess("asyncio", [site.url("/2")], **other, REP_RETRY_DELAY=0.001).result()
        result = first.result()
    finally:
        first.kill()
    assert result["fetched"] == [site.url("/1")]
    assert result["dropped"] == {site.url("/private"): "rule"}
    assert sorted(site.targets) == ["/1", "/2"]
    assert len(site.robots_requests) == 2


@pytest.fixture(params=[RedisServer, Cluster, Sentinels])
def deployed(request, tmp_path):
    needs_redis()
    deployed = request.param(tmp_path)
    yield deployed
    deployed.stop()


@in_asyncio
async def test_news_come_through_again_when_a_connection_was_lost(deployed, caplog):
    caplog.set_level(logging.INFO)
    here, there = (news_of(deployed.uri) for _ in range(2))
    heard = []
    here.listen(lambda *news: heard.append(news))

    async def told(at):
        await tell_until(lambda: there.tell(ORIGIN, at), lambda: heard)
        assert set(heard) == {(A, at)}
        heard.clear()

    await told(0.1 + 0.2)
    if isinstance(deployed, RedisServer):
        deployed.stop()
        await until(lambda: caplog.messages)
        deployed.start()
    elif isinstance(deployed, Sentinels):
        deployed.fail_over()
    else:
        for server in deployed.servers:
            server.client.client_kill_filter(_type="pubsub")
    heard.clear()
    await tell_until(lambda: there.tell(ORIGIN, 7.0), lambda: (A, 7.0) in heard)
    assert len(caplog.messages) <= 1
    here.close()


@in_asyncio
async def test_a_connection_that_was_lost_without_a_word_is_noticed(
    redis_server, caplog, monkeypatch
):
    from scrapy_rep.stores import redis_news

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(redis_news, "_QUIET", 0.01)
    monkeypatch.setattr(redis_news, "_LOOK", 0.02)
    here, there = (news_of(redis_server.uri) for _ in range(2))
    heard = []
    here.listen(lambda *news: heard.append(news))
    await tell_until(lambda: there.tell(ORIGIN, 5.0), lambda: heard)
    redis_server.pause()
    try:
        await until(lambda: caplog.messages)
    finally:
        redis_server.resume()
    await tell_until(lambda: there.tell(ORIGIN, 7.0), lambda: (A, 7.0) in heard)
    (message,) = caplog.messages
    assert "TimeoutError: the server is silent" in message
    here.close()


@in_asyncio
async def test_what_makes_no_sense_is_left_out(redis_server):
    here = news_of(redis_server.uri)
    heard = []
    here.listen(lambda *news: heard.append(news))
    client = redis_server.client
    await until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 1)
    for message in (
        "",
        "5",
        "x https://a.example",
        "5 ftps://a",
        b"\xff",
        "5 http://a/" + "a" * 2000,
    ):
        client.publish(CHANNEL, message)
    client.publish(CHANNEL, f"5 {ORIGIN}")
    await until(lambda: heard)
    assert heard == [(A, 5.0)]
    here.close()
    await until(lambda: client.pubsub_numsub(CHANNEL)[0][1] == 0)


@in_asyncio
async def test_what_a_crawl_holds_in_memory_is_dropped_unless_it_is_what_is_told(redis_server):
    options = Options.from_settings(Settings({"REP_STORE": redis_server.uri}))
    here, there = Shared(options), Shared(options)
    told = []
    here.join(here, told.append)
    record = unreachable()
    access = Access(Grant.ALL, Reason.UNAVAILABLE, None, record.last.evidence.at, 1e12)
    here.entries.put(A, Entry(access), 1)
    await tell_until(lambda: there.tell(record), lambda: told)
    assert A in here.entries
    access = Access(Grant.ALL, Reason.UNAVAILABLE, None, 1.0, 1e12)
    here.entries.put(A, Entry(access), 1)
    await tell_until(lambda: there.tell(record), lambda: A not in here.entries)
    await here.leave(here)


@in_asyncio
async def test_a_user_who_may_not_listen_is_told_once(redis_server, caplog):
    caplog.set_level(logging.INFO)
    client = redis_server.client
    client.execute_command(
        "ACL", "SETUSER", "deaf", "on", ">s3cret", "~*", "+@all", "resetchannels"
    )
    here = news_of(redis_server.uri.replace("//", "//deaf:s3cret@"))
    here.listen(lambda *_: None)
    await until(lambda: caplog.messages)
    await here.tell(ORIGIN, 5.0)
    await a_while()
    (message,) = caplog.messages
    assert message.startswith("Redis can't tell of sites that are back")
    assert "NoPermissionError" in message
    here.close()
    client.execute_command("ACL", "DELUSER", "deaf")
