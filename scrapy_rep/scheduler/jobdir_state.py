"""JOBDIR before the spider is opened: which queue has begun its crawl, and whether it can be used.

If the queue raised an error when Scrapy's scheduler opens it, Scrapy would close the spider, and
empty ``spider.state``. So the file of an earlier crawl is opened with the add-on already.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from scrapy.pqueues import DownloaderAwarePriorityQueue, ScrapyPriorityQueue
from scrapy.settings import BaseSettings

from scrapy_rep.exceptions import SettingsError

STATE: Final[list[str | int]] = ["scrapy_rep.RobotsAwarePriorityQueue", 0]
"""What Scrapy's scheduler stores as the state of the queue, in JOBDIR. Scrapy's queues reject it.

DownloaderAwarePriorityQueue accepts no list, and ScrapyPriorityQueue only a list of numbers.
"""
_STATE_NAME: Final = "active.json"
"""The file from which Scrapy's scheduler reads this state."""


def folder_of(settings: BaseSettings) -> Path | None:
    """Return the folder in which Scrapy's scheduler lets a queue store requests; None: none."""
    jobdir = settings["JOBDIR"]
    return Path(jobdir, "requests.queue") if jobdir else None


def read_state(folder: Path) -> Any:
    """Return the state of the queue, empty if there is none. Raises SettingsError."""
    path = folder / _STATE_NAME
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"{path} can't be read ({error}). Restore a copy of it, or set JOBDIR to a new "
            "directory"
        ) from None


def write_state(folder: Path) -> None:
    """Write ``STATE``: from now on Scrapy's queues reject the folder, even after a kill."""
    new = folder / f"{_STATE_NAME}.new"
    new.write_text(json.dumps(STATE), encoding="utf-8")
    new.replace(folder / _STATE_NAME)


def other_queue(
    settings: BaseSettings,
) -> type[ScrapyPriorityQueue | DownloaderAwarePriorityQueue] | None:
    """Return Scrapy's queue that has begun the crawl in JOBDIR; None if ours has, or none."""
    folder = folder_of(settings)
    state = () if folder is None else read_state(folder)
    if not state or state == STATE:
        return None
    return DownloaderAwarePriorityQueue if isinstance(state, dict) else ScrapyPriorityQueue
