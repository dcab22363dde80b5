"""The Redis store where Redis is more than one server, or asks who comes."""

import asyncio
import re
from pathlib import Path

import pytest

from scrapy_rep.stores.base import PAUSE, StoreError, key_of_host
from scrapy_rep.stores.registry import is_valid_uri, without_secrets
from tests.crawling.process import CrawlProcess
from tests.crawling.web import robots
from tests.redis_deployments import TLS, Cluster, Sentinels
from tests.redis_server import RedisServer, needs_redis
from tests.stores.records import ORIGIN, available
from tests.stores.test_contract import LONG, MAX_SIZE, OTHER, Contract, held, is_about
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.in_asyncio

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "stores.rst"
OWN = {"prefix": "robots:", "max_size": MAX_SIZE, "max_age": 5e6, "timeout": PATIENCE}


def store_of(uri):
    from scrapy_rep.stores.redis import RedisStore

    return RedisStore(uri, **OWN)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    needs_redis()
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


async def test_a_cluster_whose_keys_move(cluster):
    store = store_of(cluster.uri)
    others = [f"https://site-{number}.example" for number in range(9)]
    for origin in (ORIGIN, *others):
        await store.put(available(origin))
    assert sorted([key async for key in store.scan_keys()]) == sorted([ORIGIN, *others])
    await store.claim(ORIGIN, "a", 30)
    cluster.move(f"robots:record:{{{ORIGIN}}}")
    assert held(await store.get(ORIGIN)) == (available(), "a")
    await store.put(available(), "a")
    assert await store.get(ORIGIN) == (available(), None)
    await store.close()


async def test_leases_of_hosts_on_a_cluster_whose_keys_move(cluster):
    """Claimed by two workers, many at once: they are on all nodes."""
    for server in cluster.servers:
        server.client.flushall()
    stores = [store_of(cluster.uri) for _ in range(2)]
    keys = [key_of_host(f"site-{number}.example") for number in range(60)]
    pauses = keys[:20]
    claims = await asyncio.gather(*(stores[0].claim(key, "a", LONG) for key in keys))
    assert {claim.holder for claim in claims} == {"a"}
    assert all(server.client.dbsize() for server in cluster.servers)
    await asyncio.gather(*(stores[0].claim(k, PAUSE, 2 * LONG, force=True) for k in pauses))
    for moved in (f"robots:lease:{{{keys[0]}}}", f"robots:lease:{{{keys[-1]}}}", "robots:pauses"):
        cluster.move(moved)
    for store in reversed(stores):
        claims = await asyncio.gather(*(store.claim(key, "b", LONG) for key in keys))
        expected = {key: (PAUSE, 2 * LONG) if key in pauses else ("a", LONG) for key in keys}
        for key, claim in zip(keys, claims, strict=True):
            assert is_about(claim.lease, *expected[key])
        assert set(await store.pauses_left()) == set(pauses)
    for store in stores:
        await store.close()


class TestCluster(Contract):
    persistent = True

    @pytest.fixture
    def make(self, cluster):
        for server in cluster.servers:
            server.client.flushall()
        return lambda: store_of(cluster.uri)


async def test_leases_and_pauses_outlive_the_primary_of_sentinels(tmp_path, request):
    needs_redis()
    sentinels = Sentinels(tmp_path)
    request.addfinalizer(sentinels.stop)
    store = store_of(sentinels.uri)
    await store.claim(ORIGIN, "a", LONG)
    await store.claim(OTHER, PAUSE, LONG, force=True)
    await until(lambda: sentinels.replica.client.dbsize() == 3)
    sentinels.fail_over()
    assert is_about((await store.claim(ORIGIN, "b", LONG)).lease, "a", LONG)
    assert is_about((await store.get(OTHER)).lease, PAUSE, LONG)
    assert list(await store.pauses_left()) == [OTHER]
    await store.close()


def test_crawls_keep_a_delay_together_on_a_cluster(cluster, web):
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.4\n"))
    pages = [[site.url(f"/{name}{n}") for n in range(3)] for name in "ab"]
    workers = [CrawlProcess("asyncio", urls, REP_STORE=cluster.uri) for urls in pages]
    assert [sorted(worker.result()["fetched"]) for worker in workers] == pages
    times = sorted(each["at"] for each in site.journal if each["target"] != "/robots.txt")
    assert times[-1] - times[0] > 1.4
    assert len(site.robots_requests) == 1


def test_a_crawl_of_scrapy_redis_on_a_cluster(cluster, web):
    """With our queue class: the others use transactions, which redis-py's client refuses."""
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    urls = [site.url(path) for path in ("/1", "/2", "/private")]
    result = CrawlProcess(
        "asyncio",
        urls,
        SCHEDULER="scrapy_redis.scheduler.Scheduler",
        SCHEDULER_QUEUE_CLASS="scrapy_rep.RobotsAwareRedisQueue",
        DUPEFILTER_CLASS="scrapy_redis.dupefilter.RFPDupeFilter",
        REDIS_URL=cluster.servers[0].uri,
        REDIS_PARAMS={"redis_cls": "redis.cluster.RedisCluster"},
        REP_STORE=cluster.uri,
    ).result()
    assert sorted(result["fetched"]) == urls[:2]
    assert result["dropped"] == {urls[2]: "rule"}


async def test_tls_with_an_own_authority(tmp_path, request):
    needs_redis()
    server = TLS(tmp_path)
    request.addfinalizer(server.stop)
    store = store_of(server.uri)
    await store.put(available())
    assert (await store.get(ORIGIN)).record == available()
    await store.close()
    with pytest.raises(StoreError, match="certificate verify failed"):
        await store_of(server.uri.partition("?")[0]).get(ORIGIN)


async def test_a_user_who_may_do_what_the_docs_say_and_no_more(redis_server):
    client = redis_server.client
    client.flushall()
    (rights,) = re.findall(r"ACL SETUSER crawler on >s3cret (.*)", DOCS.read_text())
    client.execute_command("ACL", "SETUSER", "crawler", "on", ">s3cret", *rights.split())
    place = f"127.0.0.1:{redis_server.port}"
    store = store_of(f"redis://crawler:s3cret@{place}")
    assert (await store.claim(ORIGIN, "a", 30)).holder == "a"
    await store.put(available(), "a")
    assert await store.get(ORIGIN) == (available(), None)
    assert [key async for key in store.scan_keys()] == [ORIGIN]
    assert await store.prune() == 0
    assert await store.discard(ORIGIN)
    for _ in range(2):
        assert (await store.claim(OTHER, PAUSE, LONG, force=True)).holder == PAUSE
    assert list(await store.pauses_left()) == [OTHER]
    assert "pauses" in str(client.keys())
    await store.release(OTHER, PAUSE)
    await store.close()
    with pytest.raises(StoreError) as raised:
        await store_of(f"redis://crawler:wr0ng@{place}").get(ORIGIN)
    assert "wr0ng" not in str(raised.value)
    client.execute_command("ACL", "DELUSER", "crawler")


async def test_a_replica_is_told_as_what_it_is(redis_server, tmp_path, request):
    redis_server.client.flushall()
    replica = RedisServer(tmp_path, "--replicaof", "127.0.0.1", str(redis_server.port))
    request.addfinalizer(replica.stop)
    await until(lambda: replica.client.info("replication")["master_link_status"] == "up")
    store = store_of(replica.uri)
    assert await store.get(ORIGIN) == (None, None)
    for call in (store.put(available()), store.claim(ORIGIN, "a", 30)):
        with pytest.raises(StoreError, match="read-only replica: REP_STORE must name the"):
            await call
    await store.close()


@pytest.mark.parametrize(
    "uri",
    [
        "redis+cluster://one",
        "redis+cluster://user:p%40ss@one:7000,two:7001,[::1]:7002/0",
        "rediss+cluster://one?ssl_ca_certs=/ca.pem",
        "redis+sentinel://one,two:26380/mymaster",
        "rediss+sentinel://:pass@one/mymaster/2?sentinel_password=other",
        "rediss+sentinel://one/mymaster?ssl_ca_certs=/ca.pem",
    ],
)
def test_urls(uri):
    assert is_valid_uri(uri)
    store = store_of(uri)
    assert store is not None
    assert "pass" not in without_secrets(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "redis+cluster://",
        "redis+cluster://one/1",
        "redis+cluster://one,,two",
        "redis+cluster://one:port",
        "redis+sentinel://one",
        "redis+sentinel://one/",
        "redis+sentinel://one/mymaster/two",
        "redis+sentinel:///mymaster",
        "redis+other://one",
    ],
)
def test_what_is_no_url(uri):
    assert not is_valid_uri(uri)
