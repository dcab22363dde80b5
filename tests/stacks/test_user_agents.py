"""Middlewares that put a random User-Agent on requests, or one on all of them."""

from __future__ import annotations

import pytest

from tests.stacks.sites import SPECIAL

BUILT_IN_PLACE = 100
"""The order of the middleware that decides."""
PATHS = ["/special/a", "/private/a"]


@pytest.mark.parametrize("order", [50, 400, 560, 700])
def test_a_user_agent_put_on_at(stack, order):
    agents = stack("a middleware of one's own")
    sites = agents.sites("agents", "plain", "moved")
    told = agents.crawl(
        sites,
        settings={
            "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.AgentOnAll": order},
            "AGENT_ON_ALL": SPECIAL,
        },
        urls=[*sites.urls, *(sites.url("agents", path) for path in PATHS)],
    )
    agents.check(sites, f"User-Agent set at {order}")
    # The middleware sees what was put on before it; the guard asks about what was put on after.
    private = sites.url("agents", "/private/a")
    assert (private in told["fetched"]) == (order < BUILT_IN_PLACE)


@pytest.mark.needs("scrapy_user_agents", "scrapy_fake_useragent")
@pytest.mark.parametrize(
    ("package", "middleware"),
    [
        ("scrapy-user-agents", "scrapy_user_agents.middlewares.RandomUserAgentMiddleware"),
        ("scrapy-fake-useragent", "scrapy_fake_useragent.middleware.RandomUserAgentMiddleware"),
    ],
)
def test_random_user_agents(stack, package, middleware):
    agents = stack(package)
    sites = agents.sites()
    own = "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware"
    settings = {
        "DOWNLOADER_MIDDLEWARES": {own: None, middleware: 400},
        # Without it scrapy-fake-useragent 1.4.4 finds no agents with the newest fake-useragent.
        "FAKEUSERAGENT_FALLBACK": "Mozilla/5.0",
    }
    agents.crawl(sites, settings=settings)
    sent = {headers["user-agent"] for _, _, headers in sites.journal()}
    assert "mozilla" in "".join(sent)
    agents.check(sites, "in place of Scrapy's, at 400")
