"""Responses that refuse what robots.txt allows, and those that require a license."""

import json
import logging

import pytest
from scrapy import Request

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
async def test_it_is_counted_told_once_and_not_retried(web, status, headers, body, named):
    site = web.site(robots(body), paths={"*": [answer(status, headers={**ASKS, **headers})]})
    result = await crawl(site.url("/a"), site.url("/b"), settings=RETRY)
    assert sorted(site.targets) == ["/a", "/b"]
    assert [response.status for response in result.responses] == [status] * 2
    assert result.stats[f"robotstxt/license_required_count/{status}"] == 2
    assert result.stats.get(f"robotstxt/refused_count/{status}", 0) == (0 if status == 401 else 2)
    assert told(result) == [f"{site.url('')} asks for a license (status {status}): {named}"]


@pytest.mark.parametrize(
    "page",
    [
        answer(401, headers={"WWW-Authenticate": 'Basic realm="license"'}),
        answer(403),
        answer(200, headers=ASKS),
    ],
)
async def test_what_asks_for_none(web, page):
    site = web.site(robots(""), paths={"*": [page]})
    result = await crawl(site.url("/a"))
    assert not told(result)
    assert not [name for name in result.stats if "license" in name]
    assert "dont_retry" not in result.responses[0].meta


@pytest.mark.parametrize(("number", "end"), [(3, "…"), (9, "… and 6 more")])
async def test_of_long_and_many_uris_the_log_shows_some(web, number, end):
    links = [f"<https://a.example/{n}/{'x' * 900}>" for n in range(number)]
    link = ", ".join(f'{each}; rel="license"; type="application/rsl+xml"' for each in links)
    page = answer(402, headers={**ASKS, "Link": link})
    result = await crawl(web.site(robots(""), paths={"*": [page]}).url("/a"))
    (message,) = told(result)
    assert len(message) < 800
    assert message.count("…, https://a.example/") == 2
    assert message.endswith(end)


REFUSALS = {
    "plain": (403, {}, "status 403"),
    "cloudflare": (403, {"cf-mitigated": "challenge"}, "status 403, cf-mitigated: challenge"),
    "aws": (202, {"x-amzn-waf-action": "challenge"}, "status 202, x-amzn-waf-action: challenge"),
    "captcha": (405, {"x-amzn-waf-action": "captcha"}, "status 405, x-amzn-waf-action: captcha"),
    "vercel": (429, {"x-vercel-mitigated": "deny"}, "status 429, x-vercel-mitigated: deny"),
    "price": (402, {"crawler-price": "USD 0.01"}, "status 402, crawler-price: USD 0.01"),
    "busy": (429, {}, "status 429"),
}
NOT_REFUSED = {
    "accepted": (202, {}),
    "method": (405, {}),
    "down": (503, {}),
    "login": (401, {}),
    "priced": (200, {"crawler-price": "USD 1"}),
}


async def test_what_robotstxt_allows_and_the_site_refuses_is_counted_by_site(web, tmp_path):
    rules = robots("User-agent: *\nDisallow: /private\n")
    sites = {
        name: web.site(rules, paths={"*": [answer(status, headers=headers)]})
        for name, (status, headers, *_) in {**REFUSALS, **NOT_REFUSED}.items()
    }
    urls = [site.url("/1") for site in sites.values()]
    urls += [sites["cloudflare"].url("/2"), sites["cloudflare"].url("/private")]
    urls += [Request(sites["price"].url("/2"), meta={"dont_obey_robotstxt": True})]
    report = tmp_path / "report.json"
    settings = {"RETRY_ENABLED": False, "REP_BACK_OFF_MAX": 0, "REP_REPORT": report}
    result = await crawl(*urls, settings=settings)
    lines = result.messages(logging.INFO)
    begin = "Allowed by robots.txt, but refused by the site: "
    assert sorted(line for line in lines if line.startswith(begin)) == sorted(
        f"{begin}<GET {sites[name].url('/1')}>: {cause}" for name, (*_, cause) in REFUSALS.items()
    )
    (summary,) = [line for line in lines if line.startswith("Requests allowed by robots.txt, but")]
    first, *rows = summary.splitlines()
    assert first == "Requests allowed by robots.txt, but refused by 7 sites: 8"
    cloudflare = f"{sites['cloudflare'].url('')}: status 403, cf-mitigated: challenge"
    assert rows[0] == f"       2  {cloudflare}"
    assert len(rows) == 7
    prefix = "robotstxt/refused_count/"
    counts = {
        name.removeprefix(prefix): n for name, n in result.stats.items() if name.startswith(prefix)
    }
    assert counts == {"202": 1, "402": 1, "403": 3, "405": 1, "429": 2}
    origins = {row["origin"]: row for row in json.loads(report.read_text())["origins"]}
    told = {
        name: (origins[site.url("")]["refused"], origins[site.url("")]["refusal"])
        for name, site in sites.items()
    }
    assert told == {
        **{name: (1 + (name == "cloudflare"), cause) for name, (*_, cause) in REFUSALS.items()},
        **dict.fromkeys(NOT_REFUSED, (0, None)),
    }


async def test_what_a_proxy_refuses_is_no_refusal_of_the_site(web):
    page = answer(403, headers={"Via": "1.1 proxy", "X-Squid-Error": "ERR_ACCESS_DENIED 0"})
    proxy = web.site(paths={"/robots.txt": [robots("")], "*": [page]})
    url = f"http://example.com:{proxy.port}/"
    result = await crawl(Request(url, meta={"proxy": proxy.url("")}))
    assert [response.status for response in result.responses] == [403]
    assert not [text for text in result.messages() if "refused by the site" in text]
