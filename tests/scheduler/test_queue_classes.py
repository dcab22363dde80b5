"""When ours is the priority queue, and which queue classes of the settings it can replace."""

import pytest
from scrapy.settings import Settings
from scrapy.squeues import FifoMemoryQueue, PickleFifoDiskQueue

from scrapy_rep import Addon
from scrapy_rep.utils import download_slots
from scrapy_rep.utils.scrapy_internals import describe_missing_attribute
from tests.crawling.crawl import crawl
from tests.crawling.web import robots
from tests.scheduler.queues import Doors, FakeCrawler, ours

HOW = "which is none of Scrapy's own: Scrapy's own priority queue is used, which does not hold requests back"
PRIORITY_QUEUE = "SCHEDULER_PRIORITY_QUEUE"
OURS, SCRAPYS = "RobotsAwarePriorityQueue", "DownloaderAwarePriorityQueue"


class OwnMemoryQueue(FifoMemoryQueue):
    pass


class OwnDiskQueue(PickleFifoDiskQueue):
    pass


@pytest.mark.parametrize(
    ("name", "value", "on_disk", "expected"),
    [
        ("ROBOTSTXT_OBEY", True, False, OURS),
        ("ROBOTSTXT_OBEY", False, False, OURS),
        (PRIORITY_QUEUE, f"scrapy.pqueues.{SCRAPYS}", False, SCRAPYS),
        (PRIORITY_QUEUE, "scrapy.pqueues.ScrapyPriorityQueue", False, "ScrapyPriorityQueue"),
        ("SCHEDULER_MEMORY_QUEUE", OwnMemoryQueue, False, SCRAPYS),
        ("SCHEDULER_START_MEMORY_QUEUE", OwnMemoryQueue, False, SCRAPYS),
        ("SCHEDULER_DISK_QUEUE", OwnDiskQueue, True, SCRAPYS),
        ("SCHEDULER_START_DISK_QUEUE", OwnDiskQueue, True, SCRAPYS),
        # Nothing is kept there.
        ("SCHEDULER_DISK_QUEUE", OwnDiskQueue, False, OURS),
        ("SCHEDULER_START_MEMORY_QUEUE", None, False, OURS),
        ("SCHEDULER_MEMORY_QUEUE", "scrapy.squeues.FifoMemoryQueue", False, OURS),
        ("SCHEDULER_DISK_QUEUE", "scrapy.squeues.MarshalLifoDiskQueue", True, OURS),
    ],
)
async def test_the_queue_is_ours_where_it_can_be_and_nobody_has_set_another(
    web, tmp_path, name, value, on_disk, expected
):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    seen, missing = set(), set()
    crawlers = []

    def then(response):
        scheduler = crawlers[0].engine._slot.scheduler
        seen.update(type(q).__name__ for q in (scheduler.mqs, scheduler.dqs) if q is not None)
        for describe in (describe_missing_attribute, download_slots.describe_missing_attribute):
            missing.add(describe(crawlers[0]))

    result = await crawl(
        site.url("/1"),
        site.url("/private"),
        settings={name: value, **({"JOBDIR": str(tmp_path)} if on_disk else {})},
        opened=crawlers.append,
        then=then,
    )
    assert seen == {expected}
    obeys = (name, value) != ("ROBOTSTXT_OBEY", False)
    assert result.dropped == ({site.url("/private"): "rule"} if obeys else {})
    told = [text for text in result.messages() if "Scrapy's own priority queue" in text]
    assert len(told) == (value in {OwnMemoryQueue, OwnDiskQueue} and expected == SCRAPYS)
    assert all(text.startswith(f"{name} is ") and text.endswith(HOW) for text in told)
    assert missing == {None}


@pytest.mark.filterwarnings("ignore:.*CONCURRENT_REQUESTS_PER_IP")
def test_a_queue_for_concurrent_requests_per_ip_is_left_to_the_user():
    settings = Settings({"CONCURRENT_REQUESTS_PER_IP": 4})
    Addon().update_settings(settings)
    assert settings.getpriority("SCHEDULER_PRIORITY_QUEUE") == 0
    # As Scrapy's queue does.
    with pytest.raises(ValueError, match="CONCURRENT_REQUESTS_PER_IP"):
        ours(FakeCrawler(Doors(), CONCURRENT_REQUESTS_PER_IP=2))
