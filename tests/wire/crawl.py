"""One crawl, in a process of its own: an order as JSON in, a journal in a file.

``{"mode", "settings" (with ``WIRE_PARTS``, see `Part`), "requests": [see `WireSpider`], "journal": path,
"at_most": seconds, "awaited": [numbers of requests; the spider closes when they have ended],
"closes_after_refusal": whether the spider closes then}``
"""

import json
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scrapy import signals
from scrapy.utils.asyncio import call_later

from tests.crawling.crawl import SETTINGS, patient
from tests.crawling.mode_crawl import MODES
from tests.wire.parts import Part
from tests.wire.spider import WireSpider


def describe(crawler):
    """Return what the parts of the crawl wait for."""
    engine = crawler.engine
    found = {"active": [str(request) for request in engine.downloader.active]}
    found["in progress"] = [str(request) for request in engine._slot.inprogress]
    found["slots"] = [str(slot) for slot in engine.downloader.slots.values() if slot.active]
    found["closing"] = engine._slot.closing is not None
    found["pending"] = engine._slot.scheduler.has_pending_requests()
    found["starting"] = engine._start is not None
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
    random.seed(order.get("seed"))
    WireSpider.order = order
    runner, more = MODES[order["mode"]]
    settings = {**SETTINGS, **more, **order["settings"]}
    settings["REP_STORE"] = patient(settings["REP_STORE"])
    # Scrapy tells classes apart by their names.
    settings["DOWNLOADER_MIDDLEWARES"] = {
        type(f"Part{number}", (Part,), {"told": told}): told["order"]
        for number, told in enumerate(settings.pop("WIRE_PARTS", ()))
    }
    process = runner(settings)
    crawler = process.create_crawler(WireSpider)

    def tell(what, **more):
        stats = crawler.stats.get_stats()
        errors = stats.get("log_count/ERROR", 0) + stats.get("log_count/CRITICAL", 0)
        own = {key: value for key, value in stats.items() if key.startswith("robotstxt/")}
        crawler.spider.journal.write(what, errors=errors, stats=own, **more)

    def give_up():
        """End without waiting for what hangs."""
        tell("gave up", waits=describe(crawler))
        os._exit(1)

    def opened():
        call_later(order["at_most"], give_up)

    def closed(reason):
        tell("closed", reason=reason)

    crawler.signals.connect(opened, signals.spider_opened)
    crawler.signals.connect(closed, signals.spider_closed)
    process.crawl(crawler)
    process.start()


if __name__ == "__main__":
    main()
