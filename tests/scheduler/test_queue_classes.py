"""Which queue classes of the settings ours can take the place of."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import pytest_twisted
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue

from scrapy_rep.utils import download_slots
from scrapy_rep.utils.scrapy_internals import NEEDED, describe_missing_attribute
from tests.crawling.crawl import ListSpider, crawl
from tests.crawling.web import robots
from tests.scheduler.queues import Doors, FakeCrawler, ours

HOW = "which is none of Scrapy's own: Scrapy's own priority queue is used, which does not hold requests back"


class OwnMemoryQueue(FifoMemoryQueue):
    pass


class OwnDiskQueue(PickleFifoDiskQueue):
    pass


class StoredSpider(ListSpider):
    name = "stored"


@pytest.mark.parametrize(
    ("name", "queue", "on_disk", "expected"),
    [
        ("SCHEDULER_MEMORY_QUEUE", OwnMemoryQueue, False, False),
        ("SCHEDULER_START_MEMORY_QUEUE", OwnMemoryQueue, False, False),
        ("SCHEDULER_DISK_QUEUE", OwnDiskQueue, True, False),
        ("SCHEDULER_START_DISK_QUEUE", OwnDiskQueue, True, False),
        # Nothing is kept there.
        ("SCHEDULER_DISK_QUEUE", OwnDiskQueue, False, True),
        ("SCHEDULER_START_MEMORY_QUEUE", None, False, True),
        ("SCHEDULER_MEMORY_QUEUE", "scrapy.squeues.FifoMemoryQueue", False, True),
        ("SCHEDULER_DISK_QUEUE", "scrapy.squeues.MarshalLifoDiskQueue", True, True),
    ],
)
@pytest_twisted.ensureDeferred
async def test_scrapys_own_priority_queue_is_used_for_classes_of_others(
    web, tmp_path, name, queue, on_disk, expected
):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    seen = set()

    def then(response):
        scheduler = result_crawler[0].engine._slot.scheduler
        seen.update(type(q).__name__ for q in (scheduler.mqs, scheduler.dqs) if q is not None)

    result_crawler = []
    result = await crawl(
        site.url("/1"),
        site.url("/private"),
        settings={name: queue, **({"JOBDIR": str(tmp_path)} if on_disk else {})},
        opened=result_crawler.append,
        then=then,
        spidercls=StoredSpider,
    )
    assert site.targets == ["/1"]
    assert result.dropped == {site.url("/private"): "rule"}
    ours = {"RobotsAwarePriorityQueue"}
    assert seen == (ours if expected else {"DownloaderAwarePriorityQueue"})
    told = [text for text in result.messages() if "Scrapy's own priority queue" in text]
    assert len(told) == (not expected)
    assert all(text.startswith(f"{name} is ") and text.endswith(HOW) for text in told)


@pytest.mark.parametrize(
    "path", [*NEEDED, *(f"downloader.{name}" for name in download_slots.NEEDED)]
)
def test_without_a_part_of_scrapy_its_own_priority_queue_is_used(path, caplog):
    crawler = FakeCrawler(Doors())
    holder = crawler
    *above, name = f"engine.{path}".split(".")
    for each in above[:-1]:
        holder = getattr(holder, each)
    part = getattr(holder, above[-1])
    names = {each for each in dir(part) if not each.startswith("__")} - {name}
    setattr(holder, above[-1], SimpleNamespace(**{each: getattr(part, each) for each in names}))
    queue = ours(crawler)
    assert type(queue) is DownloaderAwarePriorityQueue
    (told,) = [text for text in caplog.messages if "priority queue is used" in text]
    what = f"downloader has no {name}" if name in download_slots.NEEDED else f"engine has no {path}"
    assert told.startswith(f"Scrapy's {what}, which ")
    assert not crawler.doors.admission.has_queue


@pytest_twisted.ensureDeferred
async def test_this_scrapy_has_all_of_them(web):
    site = web.site(robots(""))
    crawlers = []
    seen = []
    await crawl(
        site.url("/"),
        opened=crawlers.append,
        then=lambda response: seen.extend(
            (
                describe_missing_attribute(crawlers[0]),
                download_slots.describe_missing_attribute(crawlers[0]),
            )
        ),
    )
    assert seen == [None, None]
