"""How many lookups are under way at a time: what a crawl fetches, and the permits themselves."""

import asyncio
from functools import partial

import pytest

from scrapy_rep.cache import lookup_limit
from scrapy_rep.cache.lookup_limit import LookupLimit
from tests.crawling.crawl import crawl
from tests.crawling.web import held, robots
from tests.host_names import LoopbackResolver
from tests.made_up_time import MadeUpTime
from tests.running import in_asyncio
from tests.waiting import a_while, until

DAY = 86_400
MANY = {"CONCURRENT_REQUESTS": 24}


def asked(sites):
    return [site for site in sites if site.robots_requests]


def held_sites(web, number):
    return [web.site(held(robots(""))) for _ in range(number)]


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"CONCURRENT_REQUESTS": 24}, 24),
        ({"CONCURRENT_REQUESTS": 3}, 3),
        ({"CONCURRENT_REQUESTS": 24, "REP_CONCURRENT_FETCHES": 5}, 5),
        ({"CONCURRENT_REQUESTS": 0}, 16),
        ({}, 16),
    ],
)
async def test_as_many_are_fetched_as_concurrent_requests_where_nothing_is_set(
    web, monkeypatch, settings, most
):
    monkeypatch.setattr(lookup_limit, "_SLOW", DAY)
    sites = held_sites(web, 26)

    async def meanwhile(crawler):
        await until(lambda: len(asked(sites)) >= most)
        await a_while()
        assert len(asked(sites)) == most
        for site in sites:
            site.release()

    result = await crawl(*(site.url("/") for site in sites), settings=settings, meanwhile=meanwhile)
    assert len(result.fetched) == len(sites)


async def test_a_crawl_of_few_sites_begins_no_more_fetches_than_it_has_sites(web):
    sites = [web.site(robots("")) for _ in range(3)]
    urls = [site.url(f"/{number}") for number in range(20) for site in sites]
    result = await crawl(*urls, settings={"CONCURRENT_REQUESTS": 100})
    assert [len(site.robots_requests) for site in sites] == [1, 1, 1]
    assert len(result.fetched) == 60


async def test_pages_of_a_known_site_come_while_all_others_are_looked_up(web):
    sites = held_sites(web, 30)
    known = web.site(robots(""))
    pages = [known.url(f"/{number}") for number in range(10)]

    async def meanwhile(crawler):
        await until(lambda: len(known.targets) == len(pages))
        assert not any(site.targets for site in sites)
        for site in sites:
            site.release()

    urls = [pages[0], *(site.url("/") for site in sites), *pages[1:]]
    result = await crawl(*urls, settings=MANY, meanwhile=meanwhile)
    assert len(result.fetched) == len(sites) + len(pages)


class HoldingResolver(LoopbackResolver):
    """Resolves the name of one host at once, all others when the test says so."""

    def __init__(self):
        self.held = []

    def resolveHostName(self, receiver, name, portNumber=0, *args, **kwargs):  # noqa: N803
        resolve = partial(super().resolveHostName, receiver, name, portNumber)
        if name == "known.example":
            return resolve()
        self.held.append(resolve)
        return self


async def test_pages_of_a_known_site_need_no_resolver_that_is_busy(web, monkeypatch):
    from twisted.internet import reactor

    monkeypatch.setattr(lookup_limit, "_SLOW", DAY)
    resolver = HoldingResolver()
    before = reactor.installNameResolver(resolver)
    site = web.site(robots(""))
    host = site.url("").removeprefix("http://").replace("127.0.0.1", "{}").rstrip("/")
    known = [f"http://{host.format('known.example')}/{number}" for number in range(10)]
    others = [f"http://{host.format(f'site-{number}.example')}/" for number in range(30)]

    async def meanwhile(crawler):
        await until(lambda: len(site.targets) == len(known) and resolver.held)
        assert len(resolver.held) <= MANY["CONCURRENT_REQUESTS"]
        reactor.installNameResolver(LoopbackResolver())
        for resolve in resolver.held:
            resolve()

    try:
        result = await crawl(known[0], *others, *known[1:], settings=MANY, meanwhile=meanwhile)
    finally:
        reactor.installNameResolver(before)
    assert sorted(result.fetched) == sorted([*known, *others])


@pytest.mark.parametrize("files", [8, 10_000])
async def test_slow_sites_take_half_of_the_files_at_most(web, monkeypatch, files):
    monkeypatch.setattr(lookup_limit, "_max_open_files", lambda: files)
    monkeypatch.setattr(lookup_limit, "_SLOW", 0.02)
    sites = held_sites(web, 12)
    most = min(len(sites), files // 2)  # one has a permit, the others are slow

    async def meanwhile(crawler):
        await until(lambda: len(asked(sites)) == most)
        await a_while()
        assert len(asked(sites)) == most
        sites[0].release()  # so that the next one may be slow
        await until(lambda: len(asked(sites)) == min(len(sites), most + 1))
        for site in sites:
            site.release()

    urls = [site.url("/") for site in sites]
    settings = {"REP_CONCURRENT_FETCHES": 1}
    result = await crawl(*urls, settings=settings, meanwhile=meanwhile)
    assert len(result.fetched) == len(sites)


# Permits.


async def a_turn():
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn


@in_asyncio
async def test_a_permit_that_is_given_to_who_gives_up_is_not_lost():
    limit = LookupLimit(1, MadeUpTime().clock)
    permit = limit.take()
    assert limit.take() is None
    first, second = (asyncio.ensure_future(limit.acquire()) for _ in range(2))
    await a_turn()
    permit.release()  # to the first, which is cancelled before it goes on
    permit.release()
    first.cancel()
    await asyncio.wait([first, second])
    assert first.cancelled()
    third = asyncio.ensure_future(limit.acquire())
    await a_turn()
    third.cancel()  # while it waits
    await asyncio.wait([third])
    assert not limit.has_room
    second.result().release()
    assert (await limit.acquire()).is_held


def test_one_timer_passes_on_the_permits_of_all_that_are_slow():
    time, room = MadeUpTime(), []
    limit = LookupLimit(3, time.clock)
    limit.on_room = lambda: room.append(time.now)
    first = limit.take()
    time.advance(0.5)
    second, third = limit.take(), limit.take()
    assert not limit.has_room
    assert time.timers == [1.0]
    second.release()
    assert (room, limit.has_room) == ([0.5], True)
    time.advance(0.5)
    assert (room, limit.slow, time.timers) == ([0.5, 1.0], 1, [1.5])
    time.advance(0.5)
    assert (room, limit.slow, time.timers) == ([0.5, 1.0, 1.5], 2, [])
    for permit in (first, third):
        permit.release()
    assert (room, limit.slow) == ([0.5, 1.0, 1.5], 0)
