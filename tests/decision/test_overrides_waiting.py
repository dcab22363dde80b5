"""REP_OVERRIDES where requests wait: in the queue, deferred, on disk, and in the middleware."""

from __future__ import annotations

import pytest

from tests.crawling.crawl import SCRAPYS_QUEUE, crawl, releasing_when, stat
from tests.crawling.web import answer, held, robots
from tests.decision.test_overrides import overridden, override
from tests.scheduler.test_broad import DEFER
from tests.test_signals import Ear

RULES = "User-agent: *\nDisallow: /private\n\nUser-agent: partner\nDisallow: /partner\n"
AS_PARTNER = overridden(override("agent", agent="partner"))
QUEUES = pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])


@pytest.mark.parametrize(("policy", "fetched"), [("ignore", 3), ("disallow", 0), ("file", 2)])
async def test_what_an_override_decides_is_not_deferred(web, tmp_path, policy, fetched):
    (tmp_path / "rules").write_text("User-agent: *\nDisallow: /private\n")
    site = web.site(answer(503))
    path = {"path": str(tmp_path / "rules")} if policy == "file" else {}
    result = await crawl(
        *(site.url(path) for path in ("/1", "/2", "/private")),
        settings={**DEFER, **overridden(override(policy, **path))},
    )
    assert len(result.fetched) == fetched
    assert len(result.failures) == 3 - fetched
    assert site.robots_requests == []
    assert "robotstxt/deferred" not in result.stats
    assert result.stats[f"robotstxt/override_count/{policy}"] == 3


@QUEUES
async def test_another_agent_waits_as_all_do_and_each_request_is_told_of_once(web, queue):
    site = web.site(held(answer(503)), robots(RULES))
    ear = Ear("robotstxt_verdict")
    paths = ["/1", "/private", "/partner"] + [f"/more/{number}" for number in range(9)]

    def all_wait(crawler):
        return stat(crawler, "scheduler/enqueued") >= len(paths)

    settings = {**DEFER, **queue, **AS_PARTNER, "CONCURRENT_REQUESTS": 4}
    urls = map(site.url, paths)
    at_last = releasing_when(all_wait, site)
    result = await crawl(*urls, meanwhile=at_last, settings=settings, opened=ear.listen)
    told = [what["request"].url for _, what in ear.heard if what["decision"].override]
    assert sorted(told) == sorted(site.url(path) for path in paths)
    assert result.stats["robotstxt/override_count/agent"] == len(paths)
    if queue:
        # Only our queue can defer.
        assert set(result.dropped.values()) <= {"unreachable", "rule"}
        assert "/partner" not in site.targets
        return
    assert sorted(site.targets) == sorted(set(paths) - {"/partner"})
    assert result.dropped == {site.url("/partner"): "rule"}
    assert len(site.robots_requests) == 2
    # Its rules were looked for by the name that the override gives.
    assert "robotstxt/waited" not in result.stats
