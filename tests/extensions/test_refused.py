"""A crawl that is refused at its start leaves what the crawls before it have written."""

import gc
import json
import sqlite3
from contextlib import closing

import pytest
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from scrapy_rep import SettingsError
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, held, robots
from tests.waiting import until

# Scrapy leaves the file of its duplicates filter open when a crawl is refused.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
RULES = "User-agent: *\nDisallow: /private\n"
REFUSED = "Another crawl is using this JOBDIR"


@pytest.fixture(autouse=True)
def collected():
    yield
    gc.collect()


def content_of(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        # Scrapy writes its state of the spider however a crawl ends.
        if path.is_file() and path.name != "spider.state"
    }


@pytest.mark.parametrize("ending", ["html", "json"])
async def test_nothing_is_written(web, tmp_path, ending):
    job = tmp_path / "job"
    site = web.site(robots(RULES))
    settings = {
        "JOBDIR": str(job),
        "REP_REPORT": str(tmp_path / f"report.{ending}"),
        "REP_EVIDENCE": str(tmp_path / "evidence.jsonl"),
    }
    await crawl(site.url("/"), site.url("/private"), settings=settings)
    with closing(sqlite3.connect(job / "requests.queue" / "requests.sqlite")) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        before = content_of(tmp_path)
        with pytest.raises(SettingsError, match=REFUSED):
            await crawl(site.url("/"), settings=settings)
        assert content_of(tmp_path) == before
    assert site.targets == ["/"]


async def test_the_report_of_the_crawl_that_goes_on_stays_its_own(web, tmp_path):
    sites = [web.site(robots(RULES), paths={"*": [held(answer(200, "a page"))]}), web.site()]
    settings = {"JOBDIR": str(tmp_path / "job"), "REP_REPORT": str(tmp_path / "report.json")}
    other = {**settings, "JOBDIR": str(tmp_path / "other")}

    async def meanwhile(crawler):
        try:
            await until(lambda: sites[0].targets)
            with pytest.raises(SettingsError, match=REFUSED):
                await maybe_deferred_to_future(Deferred.fromCoroutine(crawl(settings=settings)))
            another = crawl(sites[1].url("/"), settings=other)
            await maybe_deferred_to_future(Deferred.fromCoroutine(another))
        finally:
            sites[0].release()

    await crawl(sites[0].url("/"), settings=settings, meanwhile=meanwhile)
    told = {
        path.name: [row["origin"] for row in json.loads(path.read_text())["origins"]]
        for path in tmp_path.glob("*.json")
    }
    assert told == {
        "report.json": [sites[0].url("")],
        "report-2.json": [sites[1].url("")],
    }
