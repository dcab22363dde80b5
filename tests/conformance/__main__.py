"""Ask robots.txt engines all cases, and print how many each passes, by whose they are.

    python -m conformance                           all engines that are installed
    python -m conformance Protego robots-parser     some of them
    python -m conformance --engine NAME "COMMAND"   another one, see README.md

Engines are looked for in the folder CONFORMANCE_ENV. Exits with 1 if scrapy-rep fails a case.
"""

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

from . import results
from .running import SECONDS, run

HERE = Path(__file__).parent
ADAPTERS = HERE / "adapters"
INSTALLED = Path(
    os.environ.get("CONFORMANCE_ENV", HERE.parents[1] / ".venv-conformance")
).absolute()
PYTHON = str(INSTALLED / "bin" / "python")
OURS = "scrapy-rep"
GOOGLE = "Google's parser"
ENGINES = {
    OURS: (sys.executable, "with_scrapy_rep.py"),
    "Protego": (PYTHON, "with_protego.py"),
    "fast-robotstxt": (PYTHON, "with_fast_robotstxt.py"),
    "robotspy": (PYTHON, "with_robotspy.py"),
    "gpyrobotstxt": (PYTHON, "with_gpyrobotstxt.py"),
    "robotexclusionrulesparser": (PYTHON, "with_robotexclusionrulesparser.py"),
    "robotstxt": (PYTHON, "with_robotstxt.py"),
    "urllib.robotparser of Python 3.12": ("python3.12", "with_urllib.py"),
    "urllib.robotparser of Python 3.13": ("python3.13", "with_urllib.py"),
    "urllib.robotparser of Python 3.14": ("python3.14", "with_urllib.py"),
    "robots": ("node", "with_robots.js"),
    "robots-parser": ("node", "with_robots_parser.js"),
    "robots-txt-parser": ("node", "with_robots_txt_parser.js"),
    "robots-txt-guard": ("node", "with_robots_txt_guard.js"),
    "WWW::RobotRules": ("perl", "with_robotrules.pl"),
    "webrobots": ("ruby", "with_webrobots.rb"),
}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.environ.get("PYTHONPATH", str(HERE.parents[1])),
    "NODE_PATH": str(INSTALLED / "node_modules"),
    "CONFORMANCE_ENV": str(INSTALLED),
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
    named = not (options.engine or options.google)
    for name in options.names or (ENGINES if named else ()):
        program, adapter = ENGINES[name]
        command = [program, str(ADAPTERS / adapter)]
        version = version_of(command)
        if version is None:
            print(f"== {name} is not installed", file=sys.stderr)
        else:
            yield name, version, command
    if options.google:
        adapter = str(ADAPTERS / "with_google.py")
        path, version = options.google
        yield GOOGLE, version, [sys.executable, adapter, path]
    for name, command in options.engine:
        yield name, "", shlex.split(command)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument(
        "--engine", nargs=2, action="append", default=[], metavar=("NAME", "COMMAND")
    )
    parser.add_argument(
        "--google",
        nargs=2,
        metavar=("PATH", "COMMIT"),
        help="Google's robots_main, and what it is of",
    )
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for an answer")
    parser.add_argument("--failures", action="store_true", help="show each case that is failed")
    parser.add_argument("--write", action="store_true", help="write results.json and its page")
    options = parser.parse_args()
    if unknown := set(options.names) - set(ENGINES):
        parser.error(f"no such engine: {', '.join(unknown)}")
    cases = results.read_cases()
    rows = []
    for name, version, command in engines(options):
        print(f"== {name} {version}", file=sys.stderr)
        answers = run(command, cases, seconds=options.seconds, env=ENVIRONMENT)
        rows.append(results.summary(cases, name, version, answers))
    if options.write:
        results.write(results.gathered(cases, rows, [*ENGINES, GOOGLE]))
    show(cases, rows, options)
    return int(any(row["failed"] or row["late"] for row in rows if row["name"] == OURS))


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
            case = by_id[name]
            print(f"  {name}: {case['asks']} It answers {answer}.")
            if "by" in case:
                print(f"    {case['by']}")
        for name in row["late"]:
            print(f"  {name}: {by_id[name]['asks']} No answer in {options.seconds:g} s.")


if __name__ == "__main__":
    sys.exit(main())
