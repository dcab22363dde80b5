"""Usage preferences in crawls: eleven sites, each with its own way to say them."""

import logging

import pytest
import scrapy

from scrapy_rep import RobotsUsageDisallowed, SettingsError
from tests.crawling.crawl import SCRAPYS_QUEUE, ListSpider, crawl
from tests.crawling.web import answer, page, redirect, robots
from tests.spidermiddlewares.items import Declared
from tests.test_signals import Ear


def usage(*lines):
    return robots("User-agent: *\n" + "".join(f"{line}\n" for line in lines))


SITES = {
    "none": (answer(404), page()),
    "silent": (usage("Disallow: /private"), page()),
    "usage n": (usage("Content-Usage: train-ai=n"), page()),
    "usage y": (usage("Content-Usage: train-ai=y"), page()),
    "usage of a path": (usage("Content-Usage: train-ai=n", "Content-Usage: /page train-ai=y"), page()),
    "signal no": (usage("Content-Signal: search=yes,ai-train=no,use=reference"), page()),
    "signal above": (robots("Content-Signal: search=yes,ai-train=no\nUser-agent: *\nAllow: /\n"), page()),
    "header n": (usage("Content-Usage: train-ai=y"), page(Content_Usage="train-ai=n")),
    "header y": (usage("Content-Usage: search=y"), page(Content_Usage="train-ai=y")),
    "noai": (answer(404), page('<META content="noai" name="robots">')),
    "noml": (answer(404), page(X_Robots_Tag="otherbot: all, testbot: noml")),
}  # fmt: skip
BEFORE = {"usage n", "signal no", "signal above"}
"""Sites whose robots.txt says no to training."""
AFTER = {"header n", "noai", "noml"}
"""Sites whose pages do."""
UNKNOWN = {"none", "silent"}
"""Sites of which nothing says anything of it."""
ALL = set(SITES)


class ItemSpider(ListSpider):
    item = Declared

    def parse(self, response):
        self.crawl.responses.append(response)
        yield self.item(response.url)
        yield {"url": response.url}


class Told:
    """What came of a crawl of SITES, by their names."""

    def __init__(self, sites, crawl, judged):
        self.sites = sites
        self.crawl = crawl
        self.judged = [what for _, what in judged]
        self.declared = [item for item in crawl.items if isinstance(item, Declared)]
        self.kept = {self.name(item.url) for item in self.declared}
        self.wire = {name for name, site in sites.items() if site.targets}
        self.dropped = {self.name(failure.request.url) for failure in crawl.failures}

    def told(self, begin):
        """Return the lines of the log that begin so."""
        return [line for line in self.crawl.messages(logging.INFO) if line.startswith(begin)]

    def name(self, url):
        return next(name for name, site in self.sites.items() if url.startswith(site.url("")))


async def told(web, *, settings=None, meta=None, **attributes):
    sites = {name: web.site(body, paths={"/page": pages}) for name, (body, pages) in SITES.items()}
    ear = Ear("robotstxt_usage")
    requests = [scrapy.Request(site.url("/page"), meta=meta or {}) for site in sites.values()]
    options = {"settings": settings, "opened": ear.listen, "spidercls": ItemSpider, **attributes}
    return Told(sites, await crawl(*requests, **options), ear.heard)


def counts(told, purpose="ai-training"):
    prefix = f"robotstxt/usage_count/{purpose}/"
    return {
        name.removeprefix(prefix): value
        for name, value in told.crawl.stats.items()
        if name.startswith(prefix)
    }


TRAINING = {"REP_PURPOSES": ["ai-training"]}
NO = BEFORE | AFTER


async def test_without_purposes_nothing_is_judged(web):
    found = await told(web)
    assert found.wire == found.kept == ALL
    assert not found.judged
    assert not [name for name in found.crawl.stats if name.startswith("robotstxt/usage")]
    assert all("usage" not in r.meta["robotstxt"] for r in found.crawl.responses)


async def test_record_drops_nothing(web):
    found = await told(web, settings=TRAINING)
    assert found.wire == found.kept == ALL
    assert found.dropped == set()
    assert counts(found) == {"disallow": len(NO), "allow": 3, "unknown": len(UNKNOWN)}
    results = {found.name(item.url): item.robots_usage for item in found.declared}
    assert {name for name, said in results.items() if said == {"ai-training": "disallow"}} == NO
    refused = {found.name(what["request"].url) for what in found.judged if what["refused"]}
    assert refused == NO
    assert found.crawl.stats["robotstxt/usage_disallowed"] == len(NO)
    begin = "Usage preferences disallow a declared use (ai-training: disallow)"
    assert len(found.told(begin)) == len(NO)
    assert found.told("Pages of which usage preferences disallow a declared use: 6")
    assert not found.told("Items dropped because of usage preferences")
    noted = {found.name(r.url): r.meta["robotstxt"]["usage"] for r in found.crawl.responses}
    said = {"source": "content-usage", "label": "train-ai"}
    by_file = {**said, "value": "allow", "raw": "train-ai=y", "line": 2, "place": "robots.txt"}
    by_page = {**said, "value": "disallow", "raw": "train-ai=n", "line": None, "place": "header"}
    assert noted["header n"] == {
        "results": {"ai-training": "disallow"},
        "statements": [by_file, by_page],
        "tokens": ["testbot"],
    }


async def test_drop_items(web):
    found = await told(web, settings={"REP_USAGE_ACTION": "drop-items", **TRAINING})
    assert found.wire == ALL
    assert found.kept == ALL - NO
    assert found.crawl.stats["robotstxt/usage_items_dropped"] == 2 * len(NO)
    assert len(found.told("Dropped item (usage preferences, ai-training: disallow): ")) == 10
    assert found.told("Items dropped because of usage preferences: 12")


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE])
async def test_drop(web, queue):
    found = await told(web, settings={"REP_USAGE_ACTION": "drop", **TRAINING, **queue})
    assert found.wire == ALL - BEFORE
    assert found.dropped == BEFORE
    assert found.kept == ALL - BEFORE - NO
    assert found.crawl.stats["robotstxt/forbidden_reason_count/usage"] == len(BEFORE)
    assert sum(counts(found).values()) == len(ALL)
    for failure in found.crawl.failures:
        assert isinstance(failure.value, RobotsUsageDisallowed)
        assert failure.value.reason.value == "usage"
        assert failure.request.meta["robotstxt"]["reason"] == "usage"
        assert failure.request.meta["robotstxt"]["usage"]["results"] == failure.value.results


async def test_a_drop_says_why(web):
    site = web.site(usage("Content-Usage: train-ai=n, search=n"))
    urls = {purpose: site.url(f"/{purpose}") for purpose in ("ai-training", "search")}
    requests = [
        scrapy.Request(url, meta={"robotstxt_purposes": [purpose]}) for purpose, url in urls.items()
    ]
    result = await crawl(*requests, settings={"REP_USAGE_ACTION": "drop"})
    errors = {failure.request.url: failure.value for failure in result.failures}
    said, _ = errors[urls["ai-training"]].usage.statements
    assert (*said[:3], said.line) == ("content-usage", "train-ai", "disallow", 2)
    assert result.stats["robotstxt/forbidden"] == 2
    assert result.stats["robotstxt/forbidden_reason_count/usage"] == 2
    told = result.messages(logging.INFO)
    (summary,) = [text for text in told if text.startswith("Requests dropped")]
    for purpose, url in urls.items():
        cause = f"usage preferences in {site.url('/robots.txt')}: {purpose}: disallow"
        assert str(errors[url]) == f"Forbidden by {cause}"
        assert f"Forbidden by {cause}: <GET {url}>" in told
        assert f"       1  {cause}" in summary.splitlines()


@pytest.mark.parametrize(
    ("settings", "meta", "attributes", "dropped"),
    [
        ({}, {"robotstxt_purposes": ["ai-training"]}, {}, BEFORE),
        (TRAINING, {"robotstxt_purposes": []}, {}, set()),
        ({}, {}, {"robotstxt_purposes": "search, ai-training"}, BEFORE),
        ({"REP_DRY_RUN": True, **TRAINING}, {}, {}, set()),
        ({"REP_OVERRIDES": [{"host": "127.0.0.1", "policy": "ignore", "reason": "ours"}], **TRAINING}, {}, {}, set()),
        (TRAINING, {"dont_obey_robotstxt": True}, {}, set()),
    ],
)  # fmt: skip
async def test_other_purposes(web, settings, meta, attributes, dropped):
    found = await told(
        web, settings={"REP_USAGE_ACTION": "drop", **settings}, meta=meta, **attributes
    )
    assert found.wire == ALL - dropped
    assert found.dropped == dropped


async def test_a_purpose_that_is_none_is_an_error(web):
    found = await told(web, settings=TRAINING, meta={"robotstxt_purposes": ["training"]})
    assert found.wire == set()
    assert set(found.crawl.dropped.values()) == {"error"}
    with pytest.raises(SettingsError, match="robotstxt_purposes of the spider"):
        await told(web, robotstxt_purposes=["training"])


async def test_of_a_redirect_the_last_file_and_header_count(web):
    end = web.site(
        usage("Content-Usage: search=y", "Content-Usage: /no train-ai=n"),
        paths={"/ok": page(Content_Usage="train-ai=y")},
    )
    start = web.site(
        usage("Content-Usage: /a train-ai=y"),
        paths={
            "/a": [answer(302, "", headers={"Location": end.url("/ok"), "Content-Usage": "train-ai=n"})],
            "/b": [redirect(end.url("/no"))],
        },
    )  # fmt: skip
    settings = {"REP_USAGE_ACTION": "drop", **TRAINING}
    follow = {"handle_httpstatus_all": False}
    requests = [scrapy.Request(start.url(path), meta=follow) for path in ("/a", "/b")]
    result = await crawl(*requests, settings=settings, spidercls=ItemSpider)
    assert result.fetched == [end.url("/ok")]
    assert result.responses[0].meta["robotstxt"]["usage"]["results"] == {"ai-training": "allow"}
    assert result.dropped == {end.url("/no"): "usage"}
    assert end.targets == ["/ok"]
