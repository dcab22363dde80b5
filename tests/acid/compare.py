"""Runs the crawlers that are installed against the acid test: ``python -m tests.acid.compare``.

Packages that are not those of this project are looked for in the folder ``ACID_ENV``, a virtual
environment with a ``node_modules``. With ``--write``, the tables of the docs and of the README get what was found;
crawlers that are not installed keep what they had. The status is 1 if scrapy-rep did not keep a story.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from tests.acid import results
from tests.acid.__main__ import run, scorecard
from tests.acid.stories import ACID

CRAWLERS = Path(__file__).parent / "crawlers"
ENV = Path(os.environ.get("ACID_ENV", results.ROOT / ".venv-acid")).absolute()
AT_MOST = 600
ALONE = 120
"""Seconds for the crawl of all stories, and of one."""
AT_ONCE = 4
SCRAPY = "scrapy runspider scrapy_acid.py -a start={start} -s USER_AGENT=demobot/1.0"
# A test is short: times are, too. The rest is as by default.
OURS = (
    f"""{SCRAPY} -s 'ADDONS={{"scrapy_rep.Addon": 500}}' -s REP_STORE=memory:// -s REP_TIMEOUT=10"""
    " -s REP_RETRY_DELAY=1 -s REP_CACHE_TTL_MIN=1 -s REP_UNREACHABLE_ACTION=drop"
    " -s LOG_LEVEL=CRITICAL"
)


class Crawler(NamedTuple):
    name: str
    version: str
    """The command that prints it."""
    command: str
    token: str = "demobot"


def of_python(package):
    return f"python -c 'import importlib.metadata as m; print(m.version(\"{package}\"))'"


def of_node(package):
    return f"node -p 'require(\"{package}/package.json\").version'"


ALL = (
    Crawler("scrapy-rep", "scrapy-rep", OURS),
    Crawler(
        "Scrapy's built-in",
        "scrapy version",
        f"{SCRAPY} -s ROBOTSTXT_OBEY=True -s ROBOTSTXT_USER_AGENT=demobot -s DOWNLOAD_TIMEOUT=8 -s LOG_LEVEL=CRITICAL",
    ),
    Crawler("Crawlee (Python)", of_python("crawlee"), "python crawlee_acid.py {start}"),
    Crawler("Crawlee (JavaScript)", of_node("crawlee"), "node crawlee_acid.cjs {start}"),
    Crawler("Crawl4AI", of_python("crawl4ai"), "python crawl4ai_acid.py {start}"),
    Crawler("Scrapling", of_python("scrapling"), "python scrapling_acid.py {start}"),
    Crawler("simplecrawler", of_node("simplecrawler"), "node simplecrawler_acid.cjs {start}"),
    Crawler(
        "LinkChecker",
        of_python("linkchecker"),
        "linkchecker -f linkchecker_acid.ini --recursion-level=-1 --check-extern"
        " --user-agent=demobot/1.0 --timeout=8 --output=none {start}",
    ),
    Crawler(
        "Wget",
        "wget --version",
        "wget --recursive --level=inf --span-hosts --tries=1 --timeout=8 --no-verbose"
        " --no-check-certificate {start}",
        "wget",
    ),
    Crawler(
        "Wget2",
        "wget2 --version",
        "wget2 --recursive --level=0 --span-hosts --tries=1 --timeout=8 --no-verbose"
        " --no-check-certificate {start}",
        "wget2",
    ),
    Crawler(
        "HTTrack",
        "httrack --version",
        "httrack {start} --quiet --robots=2 --ext-depth=20 --depth=20 --go-everywhere --retries=1 --sockets=8"
        " --timeout=8 --disable-security-limits --max-rate=0 --connection-per-second=100 --path=.",
        "httrack",
    ),
    Crawler("Playwright alone", of_python("playwright"), "python playwright_acid.py {start}"),
)


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
    if crawler.version == "scrapy-rep":
        from scrapy_rep import __version__

        return __version__
    command = resolved(crawler.version)
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d[\w.-]*\w", done.stdout)
    return found[0] if found and done.returncode == 0 else None


async def measure(crawler):
    """Return what came of each story, alone: what a crawler does at one is not to count for another.

    Whether the crawl ends is asked with all of them at once.
    """
    command = resolved(crawler.command)
    how = {"token": crawler.token, "quiet": True}
    room = asyncio.Semaphore(AT_ONCE)

    async def alone(story):
        async with room:
            row, ended = await run(command, stories=[story], at_most=ALONE, **how)
        return row | {"faults": ended["faults"] + row["faults"]}

    *rows, (*_, ends) = await asyncio.gather(
        *map(alone, ACID), run(command, at_most=AT_MOST, **how)
    )
    return [*rows, ends]


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.acid.compare", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="crawlers; by default all that are installed")
    parser.add_argument("--write", action="store_true", help="write what was found to the docs")
    parser.add_argument("--wire", type=Path, metavar="FOLDER", help="write all that came there")
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
        print(f"== {crawler.name} {version}: {crawler.command}", flush=True)
        rows = asyncio.run(measure(crawler))
        print("\n".join(scorecard(rows)), flush=True)
        if options.wire:
            name = re.sub(r"\W+", "-", crawler.name.lower())
            options.wire.mkdir(exist_ok=True)
            (options.wire / f"{name}.json").write_text(json.dumps(rows, indent=1))
        found[crawler.name] = {
            "name": crawler.name,
            "version": version,
            "command": crawler.command,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "faults": ["; ".join(row["faults"][:3]) for row in rows],
        }
        if options.write:
            write(found, rows)
    ours = found.get("scrapy-rep")
    return bool(ours and any(ours["faults"]))


def write(found, rows):
    before = results.read()["crawlers"] if results.FILE.exists() else []
    # What was measured with other stories is no longer comparable.
    crawlers = {each["name"]: each for each in before if len(each["faults"]) == len(rows)} | found
    both = {
        "stories": [{name: row[name] for name in ("story", "shows", "clause")} for row in rows],
        "crawlers": [crawlers[each.name] for each in ALL if each.name in crawlers],
    }
    results.FILE.write_text(json.dumps(both, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    results.README.write_text(results.readme(both), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
