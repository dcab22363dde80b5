"""Time the engines that run in Python on real files: ``python -m conformance.speed FILE``.

Each line of FILE, which may be compressed with gzip, is JSON: ``robots`` (text) or ``robots_base64``, and
``urls``. A file without two URLs is left out. Each engine runs in a process of its own, engine after engine.
Times are of the processor, and the least of some rounds counts. With ``--write``, speed.json and the page of
results get what was found.
"""

import argparse
import base64
import gzip
import json
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

from . import results
from .__main__ import ADAPTERS, ENGINES, ENVIRONMENT, version_of

TOKEN = "ExampleBot"
LIMIT = 512_000
"""Bytes of a file that are given: some engines read no more."""
URLS = 20
"""So many of a site."""


def files(path):
    """Yield the lines of a file in the form that adapters take."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            site = json.loads(line)
            body = base64.b64decode(site.get("robots_base64", "")) or site["robots"].encode()
            if len(site.get("urls", ())) > 1:
                text = base64.b64encode(body[:LIMIT]).decode()
                yield json.dumps({"body": text, "tokens": [TOKEN], "urls": site["urls"][:URLS]})


def main():
    parser = argparse.ArgumentParser(
        prog="python -m conformance.speed", description=__doc__.split("\n")[0]
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("names", nargs="*", metavar="ENGINE")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each Nth file")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = [*files(options.file)][:: options.every]
    urls = sum(len(json.loads(line)["urls"]) for line in lines)
    rows = []
    for name, (program, adapter) in ENGINES.items():
        command = [program, str(ADAPTERS / adapter)]
        of_python = adapter.endswith(".py") and name in (options.names or ENGINES)
        version = version_of(command) if of_python else None
        if version is None:
            continue
        timed = subprocess.run(
            [*command, "--speed"],
            input="\n".join(lines),
            capture_output=True,
            check=True,
            encoding="utf-8",
            env=ENVIRONMENT,
        )
        rows.append({"name": name, "version": version, **json.loads(timed.stdout)})
    found = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "says": f"Mean times of the processor for {len(lines):,} real files and {urls:,} URLs of their sites, each file "
        f"parsed anew. Python {sys.version.split()[0]}; the rows of urllib.robotparser have their own.",
        "engines": rows,
    }
    print(results.markdown(results.speed_table(found)))
    if options.write:
        results.write_rows(results.SPEED, found)
        results.write(results.read())


if __name__ == "__main__":
    sys.exit(main())
