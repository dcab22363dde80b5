"""Runs a crawler against the stories: ``python -m acid -- COMMAND {start}``.

``{start}`` is the URL of the page that links to all stories. The command has the certificate of the
https sites in ``SSL_CERT_FILE``, and an empty directory as its current one.
The status is 1 if a story was not kept.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from .running import run, scorecard
from .stories import ACID


def main():
    parser = argparse.ArgumentParser(prog="python -m acid", description=__doc__.split("\n")[0])
    parser.add_argument("--token", default="demobot", help="the product token of the crawler")
    parser.add_argument("--at-most", type=float, default=300, metavar="SECONDS")
    parser.add_argument("--only", action="append", metavar="STORY", help="may be given again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--wire", action="store_true", help="print what came of what was not kept")
    parser.add_argument("command", nargs="+", metavar="COMMAND {start}")
    options = parser.parse_args()
    stories = [story for story in ACID if not options.only or story.name in options.only]
    if not stories:
        parser.error(f"no such story; there are: {', '.join(story.name for story in ACID)}")
    rows = asyncio.run(
        run(options.command, stories=stories, token=options.token, at_most=options.at_most)
    )
    print("\n".join(scorecard(rows)))
    if options.wire:
        for each in rows:
            if each["faults"]:
                print(f"\n{each['story']}: {'; '.join(each['faults'])}", *each["came"], sep="\n  ")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return any(each["faults"] for each in rows)


if __name__ == "__main__":
    sys.exit(main())
