"""Scrapy's HTTP cache: while crawling, and to crawl again from it without a network."""

from __future__ import annotations

import pytest

POLICIES = {"Dummy": "DummyPolicy", "RFC 2616": "RFC2616Policy"}
YEAR = 365 * 24 * 3600
CENTURY = 100 * YEAR
FROM_RECORDS = {
    "REP_CACHE_TTL": CENTURY,
    "REP_CACHE_TTL_MIN": CENTURY,
    "REP_CACHE_TTL_MAX": CENTURY,
    "REP_UNREACHABLE_STALE_AFTER": 0,
    "REP_UNREACHABLE_ALLOW_AFTER": 0,
}
"""What is known of an origin is used however old, and where nothing is known all is allowed: what is
not in the cache is not fetched anyway."""


def settings(stack, policy):
    return {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(stack.folder / "httpcache"),
        "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{POLICIES[policy]}",
        "REP_STORE": f"sqlite:///{stack.folder.as_posix()}/robots.sqlite?max_age={CENTURY}",
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_online(stack, policy):
    sites = stack.sites()
    told = [stack.crawl(sites, settings=settings(stack, policy)) for _ in range(2)]
    assert sorted(told[0]["fetched"]) == sorted(told[1]["fetched"])
    assert told[1]["stats"].get("httpcache/hit", 0) > 0
    stack.check(sites)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("known", ["fresh", "old", "no"])
def test_offline(stack, policy, known):
    sites = stack.sites("plain", "moved", "none", "agents")
    before = stack.crawl(sites, settings=settings(stack, policy))
    sites.go_away()
    again = {**settings(stack, policy), "HTTPCACHE_IGNORE_MISSING": True, **FROM_RECORDS}
    if known == "no":
        again["REP_STORE"] = "memory://"
    told = stack.crawl(sites, settings=again, later=YEAR if known == "old" else 0)
    stack.check(sites, missing=sites.reach())
    asked = {target for _, target, _ in sites.journal()}
    assert asked == ({"/robots.txt"} if known == "no" else set())
    allowed = {sites.url("none", "/private/c"), sites.url("agents", "/page"), sites.url("plain")}
    assert allowed <= set(told["fetched"]) == set(before["fetched"])
