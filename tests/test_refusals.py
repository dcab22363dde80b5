"""Responses that refuse what robots.txt allows, and a robots.txt that is refused."""

import json
import logging

from scrapy import Request

from tests.crawling.crawl import crawl
from tests.crawling.web import answer, redirect, robots

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
    (summary,) = [line for line in lines if line.startswith("Requests refused by")]
    first, *rows = summary.splitlines()
    assert first == "Requests refused by 7 sites: 8"
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


def refusal(name):
    """The answer of REFUSALS in place of robots.txt, and what is told of it."""
    status, headers, _ = REFUSALS[name]
    marks = "".join(f" ({mark}: {value})" for mark, value in headers.items())
    return answer(status, "<html>", headers=headers), f"status {status}{marks}"


NOT_SEEN = {name: refusal(name) for name in ("plain", "cloudflare", "aws", "captcha")}
NOT_SEEN["login"] = answer(401), "status 401"
SEEN = {
    "rules": robots("User-agent: *\nDisallow: /private\n"),
    "empty": robots(""),
    "rules of a challenge": answer(
        200, "User-agent: *\nAllow: /\n", headers={"cf-mitigated": "challenge"}
    ),
    "absent": answer(404),
    "gone": answer(410),
}
OTHERS = {"loop": redirect("/robots.txt"), "html": answer(200, "<html>no</html>")}


async def test_a_robotstxt_that_is_refused_is_told_and_allows_nothing_by_its_rules(web, tmp_path):
    refused = {"*": [answer(403)]}
    answers = {name: each for name, (each, _) in NOT_SEEN.items()} | SEEN | OTHERS
    sites = {name: web.site(each, paths=refused) for name, each in answers.items()}
    settings = {"RETRY_ENABLED": False, "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    # The second crawl reads the store.
    for _ in range(2):
        result = await crawl(*(site.url("/a") for site in sites.values()), settings=settings)
        lines = result.messages(logging.INFO)
        means = "that means no rules, so all its pages are allowed"
        assert sorted(line for line in lines if "was refused" in line) == sorted(
            f"robots.txt of {sites[name].url('')} was refused: {cause}; {means}"
            for name, (_, cause) in NOT_SEEN.items()
        )
        begins = {
            name: line.split(":")[0]
            for line in lines
            for name, site in sites.items()
            if f"<GET {site.url('/a')}>: status 403" in line
        }
        assert begins == {
            **dict.fromkeys(SEEN, "Allowed by robots.txt, but refused by the site"),
            **dict.fromkeys([*NOT_SEEN, *OTHERS], "Refused by the site"),
        }
        assert "Requests refused by 12 sites: 12" in "\n".join(lines)
    assert [len(site.robots_requests) for name, site in sites.items() if name != "loop"] == [1] * 11


async def test_what_a_proxy_refuses_is_no_refusal_of_the_site(web):
    page = answer(403, headers={"Via": "1.1 proxy", "X-Squid-Error": "ERR_ACCESS_DENIED 0"})
    proxy = web.site(paths={"/robots.txt": [robots("")], "*": [page]})
    url = f"http://example.com:{proxy.port}/"
    result = await crawl(Request(url, meta={"proxy": proxy.url("")}))
    assert [response.status for response in result.responses] == [403]
    assert not [text for text in result.messages() if "refused by the site" in text]


async def test_a_page_from_the_cache_is_not_refused_again(web, tmp_path):
    site = web.site(robots(""), paths={"*": [answer(403)]})
    settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    results = [await crawl(site.url("/1"), settings=settings) for _ in range(2)]
    assert [len(result.responses) for result in results] == [1, 1]
    assert [result.stats.get("robotstxt/refused_count/403") for result in results] == [1, None]
