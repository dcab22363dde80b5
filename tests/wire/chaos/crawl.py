"""One process of a crawl: an order as JSON in, a journal in a file.

``{"mode", "settings", "requests", "port", "journal": path, "at_most": seconds}``
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from scrapy import signals
from scrapy.utils.asyncio import call_later

from tests.crawling.crawl import SETTINGS
from tests.crawling.mode_crawl import MODES
from tests.wire.chaos.parts import PARTS_OF, ChaosSpider


def describe(crawler):
    """Return what the parts of the crawl wait for."""
    engine = crawler.engine
    found = {"active": [str(request) for request in engine.downloader.active]}
    found["in progress"] = [str(request) for request in engine._slot.inprogress]
    found["slots"] = [str(slot) for slot in engine.downloader.slots.values() if slot.active]
    found["closing"] = engine._slot.closing is not None
    found["pending"] = engine._slot.scheduler.has_pending_requests()
    found["starting"] = engine._start is not None
    found["concurrency"] = engine.downloader.total_concurrency
    try:
        from scrapy_rep.admission.admission import Admission

        admission = Admission.of(crawler)
        found["holds"] = [str(each) for each in admission.holds()]
        found["reasons"] = [str(reason.__dict__)[:3000] for reason in admission.reasons]
    except Exception as error:  # noqa: BLE001 - told
        found["holds"] = repr(error)
    return found


def main():
    order = json.loads(sys.stdin.readline())
    ChaosSpider.order = order
    runner, more = MODES[order["mode"]]
    settings = {**SETTINGS, "LOG_LEVEL": "INFO", **more, **order["settings"]}
    told = settings["WIRE_PARTS"]
    settings["DOWNLOADER_MIDDLEWARES"] = {
        PARTS_OF[index]: part["order"] for index, part in enumerate(told)
    }
    process = runner(settings)
    crawler = process.create_crawler(ChaosSpider)

    def give_up():
        """End without waiting for what hangs."""
        crawler.spider.journal.write("gave up", waits=describe(crawler))
        os._exit(1)

    def opened():
        call_later(order["at_most"], give_up)

    def closed(reason):
        stats = crawler.stats.get_stats()
        crawler.spider.journal.write(
            "closed",
            reason=reason,
            errors=stats.get("log_count/ERROR", 0) + stats.get("log_count/CRITICAL", 0),
            stats={key: value for key, value in stats.items() if key.startswith("robotstxt/")},
        )

    crawler.signals.connect(opened, signals.spider_opened)
    crawler.signals.connect(closed, signals.spider_closed)
    process.crawl(crawler)
    process.start()


if __name__ == "__main__":
    main()
