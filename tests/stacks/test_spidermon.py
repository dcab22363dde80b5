"""spidermon: what its monitors see of what robots.txt costs."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("spidermon")

SETTINGS = {
    "SPIDERMON_ENABLED": True,
    "EXTENSIONS": {"spidermon.contrib.scrapy.extensions.Spidermon": 500},
    "SPIDERMON_SPIDER_CLOSE_MONITORS": ["tests.stacks.parts.Monitors"],
    # Each disallowed request is an exception of the downloader, as with the built-in.
    "SPIDERMON_MAX_DOWNLOADER_EXCEPTIONS": 4,
    "SPIDERMON_MAX_ERRORS": 0,
    # One tells of the site that is down.
    "SPIDERMON_MAX_WARNINGS": 1,
    "SPIDERMON_MAX_RETRIES": 0,
    "SPIDERMON_UNWANTED_HTTP_CODES": {"500": 0, "502": 0, "503": 1, "504": 0},
}
BUILT_IN = {"ADDONS": {}, "ROBOTSTXT_OBEY": True}


@pytest.mark.parametrize("built_in", [False, True])
def test_monitors(stack, built_in):
    spidermon = stack("spidermon")
    sites = spidermon.sites()
    told = spidermon.crawl(sites, settings={**SETTINGS, **(BUILT_IN if built_in else {})})
    lines = [line for line in told["log"].splitlines() if "[Spidermon]" in line]
    assert [line for line in lines if line.endswith("OK")] != []
    failed = [line for line in lines if line.endswith("... FAIL")]
    if not built_in:
        spidermon.check(sites, "monitors at the close")
        assert failed == [], told["log"]
