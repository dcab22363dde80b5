"""REP_DRY_RUN in crawls."""

import json
import logging

import pytest
from scrapy import Request

from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots
from tests.test_signals import Ear


async def test_a_dry_run_logs_a_rule_once_and_sums_up(web, tmp_path):
    plain = web.site(robots("User-agent: *\nDisallow: /private\nDisallow: /cgi\n"))
    slow = [
        web.site(robots("User-agent: *\nCrawl-delay: 60\n"), host=f"127.0.0.{n}") for n in (2, 3)
    ]
    failing = web.site(answer(503), host="127.0.0.4")
    urls = [
        plain.url(f"/{name}/{n}")
        for name, times in (("private", 4), ("cgi", 2))
        for n in range(times)
    ]
    urls += [slow[0].url(f"/{n}") for n in range(3)] + [slow[1].url("/")]
    urls += [failing.url(f"/{n}") for n in range(3)]
    settings = {
        "REP_DRY_RUN": True,
        "REP_DEFER_TIMEOUT": 300,
        "REP_REPORT": tmp_path / "report.json",
    }
    ear = Ear("robotstxt_forbidden")
    result = await crawl(*urls, settings=settings, opened=ear.listen)
    assert sorted(result.fetched) == sorted(urls)
    assert [what["dropped"] for _, what in ear.heard] == [False] * 6
    lines = result.messages(logging.INFO)
    assert lines[0].startswith("Reading robots.txt as 'testbot', records in memory://, ")
    assert [line for line in lines if "obey" in line.lower()] == []
    assert result.messages(logging.WARNING)[0] == (
        "Dry run: all requests are sent. No Crawl-delay is kept, and no pause after status 429 or 503"
    )
    told = [line.partition(": ")[2] for line in lines if line.startswith("Dry run, would drop ")]
    where = plain.url("/robots.txt")
    assert told == [
        f"Disallow: /private (line 2 of {where})",
        f"Disallow: /cgi (line 3 of {where})",
    ]
    assert len([line for line in lines if line.startswith("Dry run, would defer ")]) == 1
    assert len([line for line in lines if "line 2): the delay would be 60 s" in line]) == 2
    (summary,) = [line for line in lines if line.startswith("Dry run: ") and "would have" in line]
    begin, *rows = summary.splitlines()
    assert begin.startswith(
        "Dry run: 6 would have been dropped, 3 deferred; with the delays of 2 sites this crawl takes at least 2 minutes ("
    )
    assert rows == [f"       4  {told[0]}", f"       2  {told[1]}"]
    told = {
        "robotstxt/dry_run/forbidden": 6,
        "robotstxt/dry_run/deferred": 3,
        "robotstxt/dry_run/hosts_with_delay": 2,
        "robotstxt/dry_run/seconds_with_delays": 120,
    }
    assert {name: result.stats[name] for name in told} == told
    report = json.loads((tmp_path / "report.json").read_text())["crawl"]
    names = ("would_drop", "would_defer", "hosts_with_delay", "seconds_with_delays")
    assert [report[name] for name in names] == [6, 3, 2, 120]


async def test_a_dry_run_tells_of_a_url_without_an_origin(web):
    bad = Request(web.site().url("/").replace("127.0.0.1", "127.0.0.1%00"))
    result = await crawl(bad, settings={"REP_DRY_RUN": True})
    assert result.stats["robotstxt/dry_run/forbidden_reason_count/no-origin"] == 1
    assert f"Dry run, would drop <GET {bad.url}>: no-origin" in result.messages()


@pytest.mark.parametrize("name", ["decision.decider.split_url", "decision.usage.describe"])
async def test_a_dry_run_drops_nothing_for_an_error_of_ours(web, monkeypatch, name):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))

    def broken(_):
        raise ZeroDivisionError

    monkeypatch.setattr(f"scrapy_rep.{name}", broken)
    result = await crawl(site.url("/private"), settings={"REP_DRY_RUN": True})
    assert result.fetched == [site.url("/private")]
    assert result.stats["robotstxt/error_count"] == 1
