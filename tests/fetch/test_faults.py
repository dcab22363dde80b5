"""Each fault of faults.py in a real crawl, against a real server."""

import re

import pytest
from scrapy import Request

from tests.crawling.crawl import crawl
from tests.fetch.faults import FAULTS, NONE, ON_THE_WIRE

CAUSES = re.compile(
    r"status \d+|timed out after [\d.]+ s|connection closed|incomplete answer|no valid HTTP|"
    r"broken compression: .+|a content coding that was not asked for: .+"
).fullmatch


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
async def test_fault(fault, web):
    site = web.site(*fault.robots, paths=fault.paths)
    requests = [Request(site.url(path), meta=dict(fault.meta)) for path in ("/private", "/public")]
    result = await crawl(*requests, settings=fault.settings, **fault.attributes)
    reached = sorted(target for target in site.targets if target in ("/private", "/public"))
    assert reached == ON_THE_WIRE[fault.asks]
    assert len(result.fetched) == len(reached)
    assert len(result.failures) == 2 - len(reached)
    assert set(result.dropped.values()) <= ({"unreachable"} if fault.asks == NONE else {"rule"})
    if fault.requests is not None:
        asked = len(site.robots_requests)
        assert asked == fault.requests or (fault.is_short_of_time and asked < fault.requests)
    assert result.stats["robotstxt/request_count"] == 1
    assert "robotstxt/error_count" not in result.stats
    if fault.asks == NONE:
        causes = {failure.value.verdict.outage.cause for failure in result.failures}
        assert len(causes) == 1
        assert CAUSES(causes.pop())
    assert result.stats["finish_reason"] == "finished"
