"""Runs the crawlers that are installed against the stories: ``python -m acid.compare``.

Packages are looked for in the folder ``ACID_ENV``, a virtual environment with a ``node_modules``.
With ``--write``, results.json and its page get what was found; crawlers that are not installed keep
what they had. The status is 1 if scrapy-rep did not keep a story that its defaults can keep.
"""

import argparse
import asyncio
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from . import results
from .crawlers import ALL
from .running import NOT_BEGUN, run, scorecard
from .stories import ACID, CRAWL_ENDS

CRAWLERS = Path(__file__).parent / "crawlers"
ENV = Path(os.environ.get("ACID_ENV", Path(__file__).parents[2] / ".venv-acid")).absolute()
AT_MOST = 1800
ALONE = 900
"""Seconds for the crawl of all stories, and of one."""
AT_ONCE = 4
OURS = "scrapy-rep"


def resolved(command):
    """Return the parts of a command as they are run here."""
    first, *parts = shlex.split(command)
    for folder in (Path(sys.executable).parent, ENV / "bin"):
        # Python is that of the packages: here there is none of them.
        if (folder / first).exists() and (first != "python" or folder == ENV / "bin"):
            first = str(folder / first)
    return [first, *(str(CRAWLERS / p) if (CRAWLERS / p).is_file() else p for p in parts)]


def version_of(crawler):
    """Return the version of a crawler, or None where it is not installed."""
    command = resolved(crawler.version)
    if crawler.command.startswith("scrapy "):
        command[0] = sys.executable  # Scrapy is a package of it
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d[\w.-]*\w(?: on Python [\d.]+)?", done.stdout)
    return found[0] if found and done.returncode == 0 else None


async def measure(crawler, at_once):
    """Return what came of each story, alone: what a crawler does at one is not to count for another.

    Whether the crawl ends is asked with all of them at once.
    """
    command = resolved(crawler.command)
    how = {"token": crawler.token, "quiet": True}
    room = asyncio.Semaphore(at_once)

    async def alone(story):
        async with room:
            row, ended = await run(command, stories=[story], at_most=ALONE, **how)
        return row | {"faults": ended["faults"] + row["faults"]}

    *rows, (*_, ends) = await asyncio.gather(
        *map(alone, ACID), run(command, at_most=AT_MOST, **how)
    )
    return [*rows, ends]


def entry(crawler, version, runs):
    """Return what is kept of the runs of a crawler, each the rows of all stories."""
    faults = [["; ".join(row["faults"][:3]) for row in rows] for rows in runs]
    both = [*zip([row["story"] for row in runs[0]], *faults, strict=True)]
    return {
        "name": crawler.name,
        "version": version,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "command": crawler.command,
        "settings": crawler.settings,
        "runs": len(runs),
        "faults": [results.worse(*each) for _, *each in both],
        "unsteady": [story for story, *each in both if len({*map(results.verdict, each)}) > 1],
    }


def main():
    parser = argparse.ArgumentParser(
        prog="python -m acid.compare", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="crawlers; by default all that are installed")
    parser.add_argument("--runs", type=int, default=2, metavar="N")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, metavar="N", help="stories")
    parser.add_argument("--write", action="store_true", help="write results.json and its page")
    options = parser.parse_args()
    os.environ["NODE_PATH"] = str(ENV / "node_modules")
    found = {}
    for crawler in ALL:
        if options.names and crawler.name not in options.names:
            continue
        version = version_of(crawler)
        if version is None:
            print(f"== {crawler.name} is not installed")
            continue
        runs = []
        for number in range(1, options.runs + 1):
            print(f"== {crawler.name} {version}, run {number}: {crawler.command}", flush=True)
            rows = asyncio.run(measure(crawler, options.at_once))
            if NOT_BEGUN in rows[-1]["faults"]:
                sys.exit(f"{crawler.name} does not start: run its command alone to see why")
            runs.append(rows)
            print("\n".join(scorecard(rows)), flush=True)
        found[crawler.name] = entry(crawler, version, runs)
        print(f"Runs differ in: {'; '.join(found[crawler.name]['unsteady']) or 'no story'}")
        if options.write:
            write(found)
    ours = found.get(OURS, {"faults": []})["faults"]
    needy = [bool(story.needs) for story in ACID]
    return any(fault and not needs for fault, needs in zip(ours, [*needy, False], strict=False))


def write(found):
    """Write what was found of some crawlers, beside what is known of others."""
    before = results.read()["crawlers"] if results.FILE.exists() else []
    # What was measured with other stories is no longer comparable.
    crawlers = {
        each["name"]: each for each in before if len(each["faults"]) == len(ACID) + 1
    } | found
    results.write(
        {
            "version": results.VERSION,
            "stories": [*(story.row for story in ACID), CRAWL_ENDS],
            "crawlers": [crawlers[each.name] for each in ALL if each.name in crawlers],
        }
    )


if __name__ == "__main__":
    sys.exit(main())
