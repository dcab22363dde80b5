"""Pages that are to be had with a license alone."""

from __future__ import annotations

import logging

import pytest
import pytest_twisted

from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots

ASKS = {"WWW-Authenticate": 'License error="invalid_request", error_description="x"'}
LINK = {"Link": '<https://a.example/l.xml>; rel="license"; type="application/rsl+xml"'}
RETRY = {"RETRY_HTTP_CODES": [401, 402, 403]}
RULES = "License: https://b.example/l.xml\nUser-agent: *\nDisallow: /no\n"


def told(result):
    return [m for m in result.messages(logging.WARNING) if "asks for a license" in m]


@pytest.mark.parametrize("status", [401, 402, 403])
@pytest.mark.parametrize(
    ("headers", "body", "named"),
    [
        (LINK, RULES, "https://a.example/l.xml"),
        ({}, RULES, "https://b.example/l.xml"),
        ({}, "", "no license is named"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_it_is_counted_told_once_and_not_retried(web, status, headers, body, named):
    site = web.site(robots(body), paths={"*": [answer(status, headers={**ASKS, **headers})]})
    result = await crawl(site.url("/a"), site.url("/b"), settings=RETRY)
    assert sorted(site.targets) == ["/a", "/b"]
    assert [response.status for response in result.responses] == [status] * 2
    assert result.stats[f"robotstxt/license_required_count/{status}"] == 2
    assert told(result) == [f"{site.url('')} asks for a license (status {status}): {named}"]


@pytest.mark.parametrize(
    "page",
    [
        answer(401, headers={"WWW-Authenticate": 'Basic realm="license"'}),
        answer(403),
        answer(200, headers=ASKS),
    ],
)
@pytest_twisted.ensureDeferred
async def test_what_asks_for_none(web, page):
    site = web.site(robots(""), paths={"*": [page]})
    result = await crawl(site.url("/a"))
    assert not told(result)
    assert not [name for name in result.stats if "license" in name]
    assert "dont_retry" not in result.responses[0].meta


@pytest_twisted.ensureDeferred
async def test_a_robots_txt_that_asks_for_one_is_no_page(web):
    site = web.site(answer(401, headers=ASKS))
    result = await crawl(site.url("/a"))
    assert result.fetched == [site.url("/a")]
    assert not told(result)


@pytest.mark.parametrize(("number", "end"), [(3, "…"), (9, "… and 6 more")])
@pytest_twisted.ensureDeferred
async def test_of_long_and_many_uris_the_log_shows_some(web, number, end):
    links = [f"<https://a.example/{n}/{'x' * 900}>" for n in range(number)]
    link = ", ".join(f'{each}; rel="license"; type="application/rsl+xml"' for each in links)
    page = answer(402, headers={**ASKS, "Link": link})
    result = await crawl(web.site(robots(""), paths={"*": [page]}).url("/a"))
    (message,) = told(result)
    assert len(message) < 800
    assert message.count("…, https://a.example/") == 2
    assert message.endswith(end)
