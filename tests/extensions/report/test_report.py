"""The report: what is written, in all of its forms."""

import hashlib
import json
import logging
import re
import sys

import pytest
from scrapy import Request

from scrapy_rep import SettingsError
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots
from tests.crawling.web import page as tagged_page
from tests.extensions.test_playwright import BROWSER, FailsAtItsStart, page

RULES = "User-agent: *\nDisallow: /private\nCrawl-delay: 0.01\n"
WHY = "agreed </script><script>document.title='owned'</script>"
ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


async def reported(web, path, **settings):
    plain = web.site(robots(RULES))
    failing = web.site(answer(503))
    other = web.site(robots(RULES), host="127.0.0.2")
    urls = [plain.url("/private"), plain.url("/"), failing.url("/"), other.url("/private")]
    entry = {"host": "127.0.0.2", "policy": "ignore", "reason": WHY, "until": "2999-12-31"}
    urls[0] = urls[0].replace("//", "//user:secret@")
    urls.append(Request(plain.url("/private/exempt"), meta={"dont_obey_robotstxt": True}))
    settings = {"REP_REPORT": path, "REP_OVERRIDES": [entry], **settings}
    result = await crawl(*urls, settings=settings)
    return result, plain, failing, other


async def test_json_has_all(web, tmp_path):
    path = tmp_path / "report.json"
    result, plain, failing, other = await reported(web, path)
    report = json.loads(path.read_text())
    assert re.fullmatch(ISO, report["crawl"]["started"])
    assert report["crawl"]["tokens"] == ["testbot"]
    assert (report["crawl"]["allowed"], report["crawl"]["dropped"]) == (2, 2)
    rows = {row["origin"]: row for row in report["origins"]}
    mine, down = rows[plain.url("")], rows[failing.url("")]
    assert (mine["dropped"], mine["allowed"], down["dropped"]) == (1, 1, 1)
    assert (mine["fetches"], down["fetches"]) == (1, 1)
    assert mine["sha256"] == hashlib.sha256(RULES.encode()).hexdigest()
    assert report["texts"] == {mine["sha256"]: {"text": RULES, "left_out": 0}}
    assert re.fullmatch(ISO, mine["fetched"])
    delay = {"asked": 0.01, "taken": 0.01, "field": "crawl-delay: 0.01", "line": 3}
    assert mine["crawl_delay"] == delay
    assert re.fullmatch(ISO, down["unreachable_since"])
    assert (down["unreachable_cause"], down["unreachable_until"]) == ("status 503", None)
    assert report["reasons"] == {
        "allowed": {"no-rule": 1, "override": 1},
        "dropped": {"rule": 1, "unreachable": 1},
        "would_drop": {},
    }
    drops = {row["reason"]: row for row in report["drops"]}
    assert drops["rule"]["urls"] == [plain.url("/private")]
    assert drops["rule"]["sha256"] == mine["sha256"]
    assert (drops["rule"]["rule"], drops["rule"]["line"]) == ("Disallow: /private", 2)
    assert drops["unreachable"]["cause"] == "status 503"
    assert report["overrides"][0]["requests"] == 1
    assert report["overrides"][0]["urls"] == [other.url("/private")]
    assert report["exempt"] == {"requests": 1, "urls": [plain.url("/private/exempt")]}
    assert report["settings"]["REP_OVERRIDES"][0]["reason"] == WHY
    assert report["settings"]["REP_DEFER_TIMEOUT"] == 0
    assert set(report["versions"]) == {"scrapy-rep", "Scrapy", "Python"}
    assert "secret" not in path.read_text()
    assert list(tmp_path.iterdir()) == [path]
    assert f"robots.txt report: {path}" in result.messages(logging.INFO)


async def test_a_dry_run_reports_what_would_be(web, tmp_path):
    page = tmp_path / "report.html"
    await reported(web, page, REP_DRY_RUN=True)
    text = page.read_text()
    assert "All requests were sent" in text
    assert "Requests that would be dropped" in text
    assert "requests dropped" not in text
    assert "Usage preferences" not in text  # without purposes


async def test_a_dry_run_tells_drops_deferrals_and_links_apart(web, tmp_path):
    path = tmp_path / "report.json"
    settings = {"REP_DRY_RUN": True, "REP_DEFER_TIMEOUT": 300}
    result, plain, failing, _ = await reported(web, path, **settings)
    assert result.stats["robotstxt/dry_run/deferred"] == 1
    report = json.loads(path.read_text())
    figures = [report["crawl"][name] for name in ("dropped", "would_drop", "would_defer")]
    assert figures == [0, 1, 1]
    assert (report["reasons"]["dropped"], report["reasons"]["would_drop"]) == ({}, {"rule": 1})
    (row,) = report["drops"]
    assert (row["urls"], row["dropped"]) == ([plain.url("/private")], False)
    rows = {row["origin"]: row for row in report["origins"]}
    assert (rows[plain.url("")]["dropped"], rows[plain.url("")]["would_drop"]) == (0, 1)
    assert rows[failing.url("")]["would_drop"] == 0


async def test_a_site_that_recovered_says_why_it_was_unreachable(web, tmp_path, clock):
    path = tmp_path / "report.json"
    site = web.site(answer(503), robots(RULES))
    phases = [clock.later(3_600, site.url("/b"))]
    await crawl(site.url("/a"), settings={"REP_REPORT": path}, phases=phases)
    (row,) = json.loads(path.read_text())["origins"]
    assert row["outcome"] == "available"
    assert row["unreachable_cause"] == "status 503"
    assert row["unreachable_since"] < row["unreachable_until"]


async def test_tags_are_counted_and_links_not_followed_are_named(web, tmp_path):
    path = tmp_path / "report.json"
    tagged = tagged_page("<meta name=robots content='nofollow, noindex'><a href=/behind></a>")
    site = web.site(robots(RULES), paths={"/tagged": tagged})

    def then(response):
        return [site.url("/behind")] if response.url.endswith("tagged") else []

    await crawl(site.url("/tagged"), settings={"REP_REPORT": path}, then=then)
    report = json.loads(path.read_text())
    assert report["crawl"]["nofollow"] == 1
    (drop,) = report["drops"]
    assert (drop["reason"], drop["urls"]) == ("nofollow", [site.url("/behind")])


@pytest.mark.parametrize("ending", ["json", "html"])
async def test_what_a_browser_is_kept_from_is_counted(web, tmp_path, ending):
    path = tmp_path / f"report.{ending}"
    sources = page("/a.png", "/private/b.png", web.site(robots("")).url("/c.png"))
    site = web.site(robots(RULES), paths={"/page": sources})
    await crawl(site.url("/page"), settings={**BROWSER, "REP_REPORT": path})
    if ending == "html":
        counted = 'Requests of browsers to disallowed URLs</th><td class="number">1<'
        assert counted in path.read_text()
        return
    counted = json.loads(path.read_text())["crawl"]
    assert (counted["subresources_forbidden"], counted["subresources_unknown"]) == (1, 1)


LICENSE = "https://example.com/license.xml"
USAGE = f"License: {LICENSE}\nUser-agent: *\nContent-Usage: train-ai=n, search=y\nDisallow: /p\n"


@pytest.mark.parametrize("ending", ["json", "html"])
async def test_preferences_about_use_have_a_section(web, tmp_path, ending):
    path = tmp_path / f"report.{ending}"
    site = web.site(robots(USAGE))
    settings = {"REP_REPORT": path, "REP_PURPOSES": ["ai-training", "search"]}
    await crawl(site.url("/a"), site.url("/b"), settings=settings)
    if ending == "html":
        assert "Usage preferences" in path.read_text()
        return
    report = json.loads(path.read_text())
    assert report["crawl"]["purposes"] == ["ai-training", "search"]
    usage = report["usage"]
    assert usage["refused"] == 2
    assert usage["results"] == [
        {"purpose": "ai-training", "result": "disallow", "pages": 2},
        {"purpose": "search", "result": "allow", "pages": 2},
    ]
    said = {(each["label"], each["value"]): each["pages"] for each in usage["statements"]}
    assert said == {("train-ai", "disallow"): 2, ("search", "allow"): 2}


CONTENT_USAGE = "content-usage: train-ai=n, search=y"


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("ending", ["json", "html"])
async def test_the_statement_is_named_that_drops_a_request(web, tmp_path, ending, dry_run):
    path = tmp_path / f"report.{ending}"
    by_line = web.site(robots(f"User-agent: *\n{CONTENT_USAGE}\n"))
    settings = {
        "REP_REPORT": path,
        "REP_PURPOSES": ["search", "ai-training"],
        "REP_USAGE_ACTION": "drop",
        "REP_DRY_RUN": dry_run,
    }
    await crawl(by_line.url("/a"), settings=settings)
    text = path.read_text()
    if ending == "html":
        for said in (CONTENT_USAGE, "ai-training: d"):
            assert said in text
        return
    names = ("robotstxt_url", "rule", "line", "cause")
    assert {tuple(map(drop.get, names)) for drop in json.loads(text)["drops"]} == {
        (by_line.url("/robots.txt"), CONTENT_USAGE, 2, "search: allow, ai-training: disallow"),
    }


async def test_html_without_jinja2_stops_the_crawl(web, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scrapy_rep.extensions.report_page", None)
    with pytest.raises(SettingsError, match=r"pip install scrapy-rep\[report\]"):
        await crawl(settings={"REP_REPORT": str(tmp_path / "report.html")})


async def test_a_report_that_fails_stops_no_crawl(web, tmp_path):
    site = web.site(robots(RULES))
    folder = tmp_path / "folder"
    folder.mkdir()

    def then(response):
        (folder / "report.json").unlink(missing_ok=True)
        folder.rmdir()

    settings = {"REP_REPORT": str(folder / "report.json")}
    result = await crawl(site.url("/"), settings=settings, then=then)
    assert result.fetched == [site.url("/")]
    assert any(text.startswith("The report was not written") for text in result.messages())


async def test_the_next_crawl_takes_the_place_of_the_last_unless_it_fails_at_its_start(
    web, tmp_path
):
    first, second = (web.site(robots(RULES)) for _ in range(2))
    path = tmp_path / "report.json"
    await crawl(first.url("/"), settings={"REP_REPORT": path})
    before = path.read_text()
    failing = {"REP_REPORT": path, "ITEM_PIPELINES": {FailsAtItsStart: 1}}
    with pytest.raises(ZeroDivisionError):
        await crawl(second.url("/"), settings=failing)
    assert path.read_text() == before
    await crawl(second.url("/"), settings={"REP_REPORT": path})
    assert list(tmp_path.iterdir()) == [path]
    (row,) = json.loads(path.read_text())["origins"]
    assert row["origin"] == second.url("")


async def test_placeholders_are_those_of_feeds(web, tmp_path):
    site = web.site(robots(RULES))
    setting = str(tmp_path / "new" / "reports" / "%(name)s %(worker)s 100%% %(time)s.json")
    await crawl(site.url("/"), settings={"REP_REPORT": setting}, worker=3)
    (path,) = (tmp_path / "new" / "reports").iterdir()
    assert re.fullmatch(r"list 3 100% \d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00\.json", path.name)
