"""Pages of one origin that go through several proxies, some of which are down."""

import pytest
from scrapy import Request

from scrapy_rep.utils.requests import first_by_other_route, route_of
from tests.crawling.crawl import crawl
from tests.crawling.web import robots
from tests.running import refusing_port

RULES = "User-agent: *\nDisallow: /private\n"
QUICK = {
    "REP_RETRY_DELAY": 0.1,
    "REP_RETRY_DELAY_MAX": 0.1,
    "REP_DEFER_TIMEOUT": 3600,
    "RETRY_ENABLED": False,
}


def through(proxy, *paths):
    return [Request(f"http://site.example{path}", meta={"proxy": proxy}) for path in paths]


@pytest.mark.parametrize("jobdir", [False, True])
async def test_proxies_that_are_down_lose_only_their_own_pages(web, tmp_path, jobdir):
    up = web.site(robots(RULES))
    first, second = (f"http://127.0.0.1:{refusing_port()}" for _ in range(2))
    pages = [
        *through(first, "/lost/1", "/lost/2"),
        *through(second, "/lost/3"),
        *through(up.url(""), "/1", "/2", "/private/3"),
    ]
    # First in, first out: the pages without a chance come first.
    queue = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue"}
    if jobdir:
        queue = {
            "JOBDIR": str(tmp_path),
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        }
    result = await crawl(*pages, settings={**QUICK, **queue})
    assert sorted(result.fetched) == ["http://site.example/1", "http://site.example/2"]
    assert result.dropped == {"http://site.example/private/3": "rule"}
    # Each of the others meets its own proxy.
    assert len(result.failures) == 4
    assert [target.removeprefix("http://site.example") for target in sorted(up.targets)] == [
        "/1",
        "/2",
        "/robots.txt",
    ]


def test_a_route_is_what_a_fetch_takes_from_a_page():
    plain = Request("http://a.example/")
    assert route_of(plain) == route_of(Request("http://b.example/x", headers={"Cookie": "a"}))
    for other in (
        Request("http://a.example/", meta={"proxy": "http://p:1"}),
        Request("http://a.example/", meta={"bindaddress": ("127.0.0.2", 0)}),
        Request("http://a.example/", headers={"User-Agent": "otherbot"}),
    ):
        assert route_of(other) != route_of(plain)
        assert first_by_other_route([plain, other], {route_of(plain)}) is other
        assert first_by_other_route([plain, other], {route_of(plain), route_of(other)}) is None
    assert first_by_other_route([plain], set()) is plain
