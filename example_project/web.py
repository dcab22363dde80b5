"""The demonstration web: one origin per story, on loopback, in one process.

Run alone it serves until its standard input ends. It prints the URL of its start page when it
is ready, and what reached it, as JSON, when it ends. The sites are those with which the acid test
begins, in ``tests/acid/stories_of_the_demo.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.acid.server import FrontSite, Site
from tests.acid.stories_of_the_demo import STORIES

LATER = float(os.environ.get("DEMO_LATER", FrontSite.seconds))
"""Seconds before each of the two pages on the way to the later links."""


async def main() -> None:
    """Serve until standard input ends, which it does with whoever started this process, too."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch() -> None:
        # Not sys.stdin: a lock of its would be held when the process ends by Ctrl-C.
        with suppress(OSError):
            while os.read(0, 1024):
                pass
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch, daemon=True).start()
    sites = [Site(story) for story in STORIES]
    front = FrontSite(sites)
    front.seconds = LATER
    for site in (*sites, front):
        await site.open()
    print(front.url("/"), flush=True)
    await ended.wait()
    print(json.dumps([*map(journal, sites), {**journal(front), "disallowed": []}]), flush=True)


def journal(site: Site) -> dict[str, object]:
    """Return what reached a site."""
    pages = [page for page in site.asked if not page.startswith("/robots")]
    return {
        "story": site.story.name,
        "shows": site.story.shows,
        "robots": len(site.robots),
        "pages": len(pages),
        "disallowed": sorted(set(pages) - site.story.may_be_fetched),
    }


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(main())
