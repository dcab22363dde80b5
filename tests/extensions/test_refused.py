"""A crawl that is refused at its start leaves what the crawls before it have written."""

import gc
import sqlite3
from contextlib import closing

import pytest

from scrapy_rep import SettingsError
from tests.crawling.crawl import crawl
from tests.crawling.web import robots

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
