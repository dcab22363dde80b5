"""Ask robots.txt engines all cases, and print how many each passes, by whose they are.

    python -m tests.conformance                           all engines that are installed
    python -m tests.conformance Protego robots-parser     some of them
    python -m tests.conformance --engine NAME "COMMAND"   another one, see the docs
    python -m tests.conformance --google PATH             Google's parser: path of its robots_main

``make conformance`` installs engines where this finds them. Exits with 1 if scrapy-rep fails a case.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.conformance import results
from tests.conformance.running import SECONDS, run

ROOT = Path(__file__).parents[2]
ADAPTERS = Path(__file__).parent / "adapters"
INSTALLED = ROOT / ".venv-conformance"
PYTHON = str(INSTALLED / "bin" / "python")
OURS = "scrapy-rep"
ENGINES = {
    OURS: (sys.executable, "with_scrapy_rep.py"),
    "Protego": (PYTHON, "with_protego.py"),
    "urllib.robotparser": (sys.executable, "with_urllib.py"),
    "robotspy": (PYTHON, "with_robotspy.py"),
    "gpyrobotstxt": (PYTHON, "with_gpyrobotstxt.py"),
    "robotexclusionrulesparser": (PYTHON, "with_robotexclusionrulesparser.py"),
    "robotstxt": (PYTHON, "with_robotstxt.py"),
    "robots": ("node", "with_robots.js"),
    "robots-parser": ("node", "with_robots_parser.js"),
    "robots-txt-parser": ("node", "with_robots_txt_parser.js"),
    "robots-txt-guard": ("node", "with_robots_txt_guard.js"),
    "WWW::RobotRules": ("perl", "with_robotrules.pl"),
}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "NODE_PATH": str(INSTALLED / "node_modules"),
}


def version_of(command):
    """Return the version that an adapter prints; None where its engine isn't installed."""
    try:
        asked = subprocess.run(
            [*command, "--version"],
            check=True,
            capture_output=True,
            encoding="utf-8",
            env=ENVIRONMENT,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return asked.stdout.strip()


def engines(options):
    """Yield name, version and command of each engine that is asked."""
    for name in options.names or ENGINES:
        program, adapter = ENGINES[name]
        command = [program, str(ADAPTERS / adapter)]
        version = version_of(command)
        if version is None:
            print(f"== {name} is not installed", file=sys.stderr)
        else:
            yield name, version, command
    if options.google:
        adapter = str(ADAPTERS / "with_google.py")
        yield "Google's parser", "", [sys.executable, adapter, options.google]
    for name, command in options.engine:
        yield name, "", shlex.split(command)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument(
        "--engine", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND")
    )
    parser.add_argument("--google", metavar="PATH", help="Google's robots_main")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for an answer")
    parser.add_argument("--failures", action="store_true", help="show each case that is failed")
    parser.add_argument("--pairs", action="store_true", help="show how many cases tell two apart")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ENGINES):
        parser.error(f"no such engine: {', '.join(unknown)}")
    cases = results.read_cases()
    asked = []
    for name, version, command in engines(options):
        print(f"== {name} {version}", file=sys.stderr)
        answers = run(command, cases, seconds=options.seconds, env=ENVIRONMENT)
        asked.append((name, version, answers))
    rows = [results.summary(cases, *engine) for engine in asked]
    if options.json:
        results.write(options.json, cases, asked)
    show(cases, rows, options)
    return int(any(row["failed"] for row in rows if row["name"] == OURS))


def show(cases, rows, options):
    table = list(results.table(rows))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    by_id = {case["id"]: case for case in cases}
    for row in rows if options.failures else ():
        print(f"\n{row['name']} fails")
        for name, answer in row["failed"].items():
            print(f"  {name}: {by_id[name]['asks']} It answers {answer}.")
    if options.pairs:
        pairs = results.told_apart(cases, rows)
        print()
        for (one, other), ids in pairs.items():
            print(f"{len(ids):>4} cases tell {one} and {other} apart")
        telling = {name for ids in pairs.values() for name in ids}
        print(f"{len(telling)} of {len(cases)} tell any two apart")
        whose = Counter(by_id[name]["whose"] for name in telling)
        print(", ".join(f"{name} {number}" for name, number in whose.items()))


if __name__ == "__main__":
    sys.exit(main())
