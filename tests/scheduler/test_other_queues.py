"""A JOBDIR that another priority queue has left is refused, and stays as it is."""

import pytest

from tests.crawling.process import CrawlProcess
from tests.crawling.web import robots

QUEUES = ["DownloaderAwarePriorityQueue", "ScrapyPriorityQueue"]
PATHS = ["/1", "/private", "/3"]


def content_of(folder):
    return {
        path: path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
        if path.name != "spider.state"  # Scrapy writes it however a crawl ends
    }


@pytest.mark.parametrize("queue", QUEUES)
def test_a_crawl_of_scrapys_queue_is_refused_and_can_be_finished_with_it(web, tmp_path, queue):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    queue = f"scrapy.pqueues.{queue}"
    theirs = {"SCHEDULER_PRIORITY_QUEUE": queue}
    job, other = ({"JOBDIR": str(tmp_path / name)} for name in ("job", "other"))
    stop = [["pause"], ["stats", {"scheduler/enqueued/disk": len(PATHS)}], ["close"]]
    CrawlProcess(
        "asyncio", [site.url(path) for path in PATHS], script=stop, **job, **theirs
    ).result()
    before = content_of(tmp_path)
    assert (tmp_path / "job" / "requests.queue" / "active.json") in before

    refused = CrawlProcess("asyncio", [site.url("/new")], **job)
    refused.process.stdout.read()
    log = refused._end()
    says = (
        f"SettingsError: {tmp_path}/job/requests.queue has the requests of another priority "
        "queue, and is not changed. Finish that crawl with SCHEDULER_PRIORITY_QUEUE = "
        f"{queue!r}, or set JOBDIR to a new directory"
    )
    assert says in log
    assert content_of(tmp_path) == before

    # Both ways out that it names.
    assert CrawlProcess("asyncio", [site.url("/new")], **other).result()["fetched"] == [
        site.url("/new")
    ]
    result = CrawlProcess("asyncio", [], **job, **theirs).result()
    assert sorted(result["fetched"]) == [site.url("/1"), site.url("/3")]
    assert list(result["dropped"]) == [site.url("/private")]
