"""A crawl that is resumed, with JOBDIR, goes on with its report."""

from __future__ import annotations

import json
import logging
import shutil

import pytest
import pytest_twisted

from tests.crawling.crawl import crawl
from tests.crawling.process import CrawlProcess
from tests.crawling.web import answer, robots

RULES = "User-agent: *\nDisallow: /private\n"


async def twice(web, folder, ending, **settings):
    """A crawl in two runs, each with a site of its own and one that both know."""
    path = folder / f"report.{ending}"
    both = web.site(robots(RULES))
    mine = [web.site(robots(RULES)), web.site(answer(503))]
    settings = {"REP_REPORT": path, "JOBDIR": str(folder / "job"), **settings}
    for number, site in enumerate(mine):
        urls = [both.url(f"/private/{number}"), both.url(f"/{number}"), site.url("/private")]
        await crawl(*urls, settings=settings)
    return path, both, mine


@pytest_twisted.ensureDeferred
async def test_json_is_of_all_runs(web, tmp_path):
    path, both, (first, second) = await twice(web, tmp_path, "json")
    report = json.loads(path.read_text())
    crawl = report["crawl"]
    assert (crawl["runs"], crawl["fetches"], crawl["responses"]) == (2, 4, 2)
    assert (crawl["allowed"], crawl["dropped"]) == (2, 4)
    assert crawl["started"] < crawl["finished"]
    rows = {row["origin"]: row for row in report["origins"]}
    assert set(rows) == {site.url("") for site in (both, first, second)}
    mine = rows[both.url("")]
    assert (mine["dropped"], mine["allowed"], mine["fetches"]) == (2, 2, 2)
    urls = {row["robotstxt_url"]: row["urls"] for row in report["drops"]}
    assert urls[both.url("/robots.txt")] == [both.url("/private/0"), both.url("/private/1")]
    assert report["texts"][mine["sha256"]]["text"] == RULES


@pytest_twisted.ensureDeferred
async def test_the_page_is_of_all_runs(web, tmp_path):
    path, both, _ = await twice(web, tmp_path, "html")
    assert "in 2 runs" in path.read_text()
    assert all(both.url(f"/private/{number}") in path.read_text() for number in range(2))


@pytest_twisted.ensureDeferred
async def test_another_jobdir_is_another_crawl(web, tmp_path):
    path, *_ = await twice(web, tmp_path, "json")
    site = web.site(robots(RULES))
    settings = {"REP_REPORT": path, "JOBDIR": str(tmp_path / "other")}
    await crawl(site.url("/private"), settings=settings)
    assert [row["origin"] for row in json.loads(path.read_text())["origins"]] == [site.url("")]


@pytest_twisted.ensureDeferred
async def test_what_a_version_with_fewer_figures_kept_is_gone_on_with(web, tmp_path):
    kept = tmp_path / "job" / "robots-report.json"
    site = web.site(robots(RULES))
    settings = {"REP_REPORT": tmp_path / "report.json", "JOBDIR": str(kept.parent)}
    await crawl(site.url("/private/1"), settings=settings)
    report = json.loads(kept.read_text())
    del report["crawl"]["subresources_forbidden"]
    kept.write_text(json.dumps(report))
    result = await crawl(site.url("/private/2"), settings=settings)
    assert result.messages(logging.ERROR) == []
    figures = json.loads(kept.read_text())["crawl"]
    assert (figures["runs"], figures["dropped"], figures["subresources_forbidden"]) == (2, 2, 0)


@pytest.mark.parametrize(("name", "value"), [("fetches", None), ("runs", "2"), ("started", 5)])
@pytest_twisted.ensureDeferred
async def test_a_report_with_other_figures_stops_no_crawl(web, tmp_path, name, value):
    kept = tmp_path / "job" / "robots-report.json"
    path, site = tmp_path / "report.json", web.site(robots(RULES))
    settings = {"REP_REPORT": path, "JOBDIR": str(kept.parent)}
    await crawl(site.url("/private/1"), settings=settings)
    report = json.loads(kept.read_text())
    report["crawl"][name] = value
    kept.write_text(json.dumps(report))
    result = await crawl(site.url("/private/2"), settings=settings)
    assert any("does not include earlier runs" in text for text in result.messages(logging.ERROR))
    assert json.loads(path.read_text())["crawl"]["runs"] == 1


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"crawl": {}}', b"\xff"])
@pytest_twisted.ensureDeferred
async def test_what_can_not_be_read_is_told_and_stops_no_crawl(web, tmp_path, text):
    job = tmp_path / "job"
    job.mkdir()
    (job / "robots-report.json").write_bytes(text)
    site = web.site(robots(RULES))
    path = tmp_path / "report.json"
    settings = {"REP_REPORT": path, "JOBDIR": str(job)}
    result = await crawl(site.url("/private"), settings=settings)
    assert (
        len([m for m in result.messages(logging.ERROR) if "does not include earlier runs" in m])
        == 1
    )
    assert json.loads(path.read_text())["crawl"]["runs"] == 1


@pytest_twisted.ensureDeferred
async def test_a_jobdir_that_can_not_be_written_stops_no_crawl(web, tmp_path):
    job = tmp_path / "job"
    site = web.site(robots(RULES))
    path = tmp_path / "report.json"

    def then(response):
        (job / "robots-report.json").unlink()
        (job / "robots-report.json").mkdir()

    settings = {"REP_REPORT": path, "JOBDIR": str(job)}
    result = await crawl(site.url("/"), settings=settings, then=then)
    assert result.fetched == [site.url("/")]
    assert json.loads(path.read_text())["crawl"]["allowed"] == 1
    assert any("will not include this one" in text for text in result.messages())
    shutil.rmtree(job)


@pytest.mark.parametrize("mode", ["asyncio", "select", "none"])
def test_in_each_mode_of_scrapy_it_is_resumed(web, tmp_path, mode):
    path = tmp_path / "report.json"
    site = web.site(robots(RULES))
    settings = {"REP_REPORT": str(path), "JOBDIR": str(tmp_path / "job")}
    for number in range(2):
        CrawlProcess(mode, [site.url(f"/private/{number}")], **settings).result()
    crawl = json.loads(path.read_text())["crawl"]
    assert (crawl["runs"], crawl["dropped"]) == (2, 2)
