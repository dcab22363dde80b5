"""APIs that take the URL of a page in one of their own, as a middleware rewrites it."""

from __future__ import annotations

import pytest

from tests.stacks.endpoints import UrlAPI

MOVED = ["moved/private/moved"]
"""What it fetches in place of a page, and the URL of the response does not tell."""
IGNORE = {"host": "localhost", "policy": "ignore", "reason": "the API that we pay for"}


@pytest.fixture
def api():
    api = UrlAPI()
    yield api
    api.close()


@pytest.mark.parametrize("override", [True, False])
def test_rewritten_urls(stack, api, override):
    stack = stack("an API by its URL")
    sites = stack.sites()
    stack.crawl(
        sites,
        settings={
            "DOWNLOADER_MIDDLEWARES": {"tests.stacks.parts.ThroughAPI": 560},
            "API_URL": api.url,
            "REP_OVERRIDES": [IGNORE] if override else [],
        },
    )
    if override:
        stack.check(sites, "with an override for it", api, known=MOVED)
        return
    # What its own robots.txt disallows is all of it.
    stack.check(sites, "without an override", api, missing=sites.reach())
