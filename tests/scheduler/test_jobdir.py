"""A JOBDIR that another queue has begun is gone on with; one that is damaged is refused in time."""

import logging
import pickle
from pathlib import Path

import pytest
from scrapy import Request

from scrapy_rep import SettingsError
from tests.crawling.crawl import ListSpider, close, crawl
from tests.crawling.web import robots
from tests.sql import execute

REQUESTS = 20
REFUSED = "can't be read|is (empty|damaged|not usable|of another program).*, and is not changed"


class Remembers(ListSpider):
    def parse(self, response):
        self.state["pages"] = self.state.get("pages", 0) + 1
        if self.state["pages"] == 3:
            close(self.crawler)
        return super().parse(response)


def pages_in(state):
    return pickle.loads(state.read_bytes())["pages"]


async def begin(web, jobdir, **settings):
    """Begin a crawl that is closed early; return its site, and what goes on with it."""
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    writes = {
        "JOBDIR": str(jobdir),
        "REP_REPORT": str(jobdir / "report.json"),
        "REP_EVIDENCE": str(jobdir / "evidence.jsonl"),
    }
    settings |= {**writes, "CONCURRENT_REQUESTS": 1}
    first, *others = [site.url(f"/{n}") for n in range(REQUESTS)]

    def then(response):  # only now robots.txt is known, so that the others wait in the queue
        return others if response.url == first else ()

    await crawl(first, settings=settings, spidercls=Remembers, then=then)
    assert 3 <= pages_in(jobdir / "spider.state") == len(site.targets) < REQUESTS
    return site, lambda: crawl(settings=writes, spidercls=Remembers)


@pytest.mark.parametrize("queue", ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"])
async def test_what_scrapys_queue_has_begun_is_gone_on_with_by_it(web, tmp_path, queue):
    site, go_on = await begin(web, tmp_path, SCHEDULER_PRIORITY_QUEUE=f"scrapy.pqueues.{queue}")
    result = await go_on()
    assert sorted(site.targets) == sorted(f"/{n}" for n in range(REQUESTS))
    assert pages_in(tmp_path / "spider.state") == REQUESTS
    assert type(result.crawler.spider.state) is dict
    warning = (
        f"JOBDIR has requests of Scrapy's {queue}: Scrapy's own priority queue is used, which does "
        "not hold requests back"
    )
    assert result.messages(logging.WARNING, name="") == [warning]
    # That crawl is finished.
    result = await go_on()
    assert result.messages(logging.WARNING, name="") == []


async def test_what_only_memory_has_when_the_crawl_is_stopped_is_told(web, tmp_path):
    site = web.site(robots("User-agent: *\nCrawl-delay: 0.1\n"))
    requests = [Request(site.url(f"/{n}"), meta={"x": lambda: None}) for n in range(REQUESTS)]
    result = await crawl(*requests, settings={"JOBDIR": str(tmp_path)}, spidercls=Remembers)
    assert 3 <= len(site.targets) < REQUESTS
    lost = f"Requests lost, because they can't be written to JOBDIR: {REQUESTS - len(site.targets)}"
    assert lost in result.messages(logging.WARNING)


def sql(*statements):
    return lambda file: [execute(file, statement) for statement in statements]


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b""),
        Path.unlink,
        sql("DROP INDEX by_rank", "ALTER TABLE requests DROP COLUMN start"),
        sql("PRAGMA user_version = 99"),
        lambda file: file.with_name("active.json").write_text("["),
    ],
    ids=["emptied", "gone", "column", "version", "state"],
)
async def test_what_can_not_be_used_is_refused_before_the_spider_is_opened(web, tmp_path, change):
    site, go_on = await begin(web, tmp_path)
    change(tmp_path / "requests.queue" / "requests.sqlite")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    fetched = len(site.targets)
    for _ in range(2):
        with pytest.raises(SettingsError, match=REFUSED) as told:
            await go_on()
        assert told.value.__cause__ is None
        assert told.value.__suppress_context__
    assert {path: path.read_bytes() for path in before} == before
    assert len(site.targets) == fetched
