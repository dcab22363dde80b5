"""scrapy-rotating-proxies, with real proxies on loopback that relay or refuse."""

from __future__ import annotations

import pytest

from tests.stacks.endpoints import Proxy

pytestmark = pytest.mark.needs("rotating_proxies")

MIDDLEWARES = {
    "rotating_proxies.middlewares.RotatingProxyMiddleware": 610,
    "rotating_proxies.middlewares.BanDetectionMiddleware": 620,
}
FEW = 2
"""Requests of a robots.txt through proxies that all refuse."""


@pytest.fixture
def proxy(request):
    proxy = Proxy(getattr(request, "param", None))
    yield proxy
    proxy.close()


def settings(proxy, **more):
    return {
        "DOWNLOADER_MIDDLEWARES": MIDDLEWARES,
        "ROTATING_PROXY_LIST": [proxy.url],
        "ROTATING_PROXY_PAGE_RETRY_TIMES": 5,
        **more,
    }


def test_a_proxy_that_relays(stack, proxy):
    rotating = stack("scrapy-rotating-proxies")
    sites = rotating.sites()
    told = rotating.crawl(sites, settings=settings(proxy))
    rotating.check(sites, "a proxy that relays", proxy)
    # The 404 and the 503 are the sites' answers; that of the page at the 404 is its policy's.
    assert told["stats"].get("bans/status/503") is None


@pytest.mark.parametrize("proxy", [403, 407, 502], indirect=True)
def test_a_proxy_that_refuses(stack, proxy):
    rotating = stack("scrapy-rotating-proxies")
    sites = rotating.sites("plain", "none")
    store = {"REP_STORE": f"sqlite:///{(rotating.folder / 'robots.sqlite').as_posix()}"}
    rotating.crawl(sites, settings=settings(proxy, **store))
    asked = len(proxy.robots_requests())
    # What the proxy refused says nothing of the sites.
    rotating.crawl(sites, settings=store)
    rotating.check(sites, f"{proxy.refusal} to everything; then directly", proxy)
    assert asked <= FEW
