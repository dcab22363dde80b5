"""Starts the demonstration web, crawls it, and checks what reached it.

Ends with a status other than 0 where a page reached the web that its robots.txt disallows.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

HERE = Path(__file__).resolve().parent

SETTINGS = {
    # The project's settings are polite to real sites; this web is ours.
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    # Every request of a robots.txt that hangs waits so long. Who watches has less patience than
    # a crawl, for which 30 seconds are right.
    "REP_TIMEOUT": 4,
    # The site that recovers is asked again while the demo still runs.
    "REP_RETRY_DELAY": 1,
    # Sites that are unreachable have their pages dropped at once, rather than waited for.
    "REP_DEFER_TIMEOUT": 0,
    # The site whose rules expire quickly asks for a max-age of a second. By default no answer is
    # used for less than ten minutes.
    "REP_CACHE_TTL_MIN": 1,
    # Warnings alone: the table is what there is to see.
    "LOG_LEVEL": "WARNING",
}
PAGES = 500


def main() -> int:
    """Run the demo, and return its exit status.

    Arguments go to ``scrapy crawl`` as they are.
    """
    signal.signal(signal.SIGTERM, _stop)
    print("Starting the demonstration web ...", flush=True)
    # It ends when its standard input does, and so with this process, however that ends. In a
    # session of its own, as Ctrl-C is for the crawl.
    with subprocess.Popen(
        [sys.executable, str(HERE / "web.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as web:
        try:
            status = _crawl(web.stdout.readline().strip())
        finally:
            web.stdin.close()
            journal = web.stdout.read()
    disallowed = _tell(json.loads(journal))
    if disallowed:
        print(f"{disallowed} disallowed pages reached the web.", file=sys.stderr)
        return 1
    if status:
        print(f"The crawl failed with status {status}.", file=sys.stderr)
    return status


def _crawl(front: str) -> int:
    """Crawl the web from its start page, and return the crawl's exit status."""
    command = ["scrapy", "crawl", "demo", "-a", f"start={front}", "-a", f"pages={PAGES}"]
    for name, value in SETTINGS.items():
        command += ["-s", f"{name}={value}"]
    command += sys.argv[1:]
    print(f"Crawling it:\n  {shlex.join(command)}\n", flush=True)
    with subprocess.Popen([sys.executable, "-m", *command], cwd=HERE) as crawl:
        try:
            return crawl.wait()
        except KeyboardInterrupt:
            # Scrapy got the Ctrl-C, too, and closes the crawl in good order.
            crawl.wait(20)
            raise
        finally:
            crawl.kill()


def _tell(journal: list[dict[str, Any]]) -> int:
    """Print what reached the web, as itself counted it; return how much of it was disallowed."""
    print("\nWhat reached the web:\n")
    width = max(len(site["story"]) for site in journal)
    line = f"{{:{width}}}  {{:>10}}  {{:>5}}  {{:>10}}  {{}}"
    print(line.format("site", "robots.txt", "pages", "disallowed", "what it shows"))
    totals = Counter()
    for site in journal:
        counts = {**site, "disallowed": len(site["disallowed"])}
        numbers = [counts[name] for name in ("robots", "pages", "disallowed")]
        totals.update(robots=numbers[0], pages=numbers[1], disallowed=numbers[2])
        print(line.format(site["story"], *numbers, site["shows"]))
    print(line.format("all", *totals.values(), "").rstrip(), flush=True)
    return totals["disallowed"]


def _stop(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
