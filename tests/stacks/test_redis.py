"""scrapy-redis: its scheduler, and the store in the same Redis."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("scrapy_redis")

SETTINGS = {
    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
    "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
}


def test_two_crawls(stack, redis_server):
    redis = stack("scrapy-redis")
    sites = redis.sites()
    redis_server.client.flushall()
    settings = {**SETTINGS, "REDIS_URL": redis_server.uri, "REP_STORE": redis_server.uri}
    redis.crawl(sites, settings=settings)
    redis.crawl(sites, settings=settings)
    redis.check(sites, "two crawls, one after the other")


def test_deferring(stack, redis_server):
    redis = stack("scrapy-redis")
    sites = redis.sites()
    redis_server.client.flushall()
    settings = {**SETTINGS, "REDIS_URL": redis_server.uri, "REP_STORE": redis_server.uri}
    redis.crawl(sites, settings={**settings, "REP_UNREACHABLE_ACTION": "defer"})
    redis.check(sites, "unreachable deferred (not with this queue)")
