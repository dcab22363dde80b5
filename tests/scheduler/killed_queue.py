"""A queue on disk in a process that is killed: an order as JSON in, nothing is closed.

``{"folder", "queue": "ours" or "scrapys", "downstream": "Fifo", "Lifo" or "SQLite", "state": {...} or null,
"push": [[url, priority, whether a start request]], "pop": number}``. Prints what was popped.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scrapy import Request, squeues

from tests.scheduler.queues import Doors, FakeCrawler, ours, scrapys

DOWNSTREAM = {
    "Fifo": squeues.PickleFifoDiskQueue,
    "Lifo": squeues.PickleLifoDiskQueue,
    "SQLite": getattr(squeues, "PickleFifoSQLiteQueue", None),  # from Scrapy 2.17 on
}


def main():
    order = json.load(sys.stdin)
    queue = {"ours": ours, "scrapys": scrapys}[order["queue"]](
        FakeCrawler(Doors()),
        key=order["folder"],
        state=order["state"],
        downstream=DOWNSTREAM[order["downstream"]],
        start=squeues.PickleFifoDiskQueue,
    )
    for url, priority, start in order["push"]:
        meta = {"is_start_request": True} if start else None
        queue.push(Request(url, priority=priority, meta=meta))
    print(json.dumps([queue.pop().url for _ in range(order["pop"])]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
