"""What a run of a benchmark found, as JSON: the figures of the docs are drawn from it, and its ratios.

A row is a dict in the order of its columns: first what was varied, then what was measured, then the
ratios of pairs that were measured in turns, named ``a/b``.
"""

import hashlib
import json
import platform
import shlex
import statistics
import sys
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "_static" / "figures"
PACKAGES = ("Scrapy", "Protego")


def add_option(parser):
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there, too")


def in_turns(names, rounds, run):
    """Run each name in each round; return the two values that `run` returns, each in lists by name."""
    firsts, seconds = ({name: [] for name in names} for _ in range(2))
    for number in range(rounds):
        for name in list(names)[:: -1 if number % 2 else 1]:
            first, second = run(name)
            firsts[name].append(first)
            seconds[name].append(second)
    return firsts, seconds


def median_ratio(values, one, other):
    return statistics.median(a / b for a, b in zip(values[one], values[other], strict=True))


def show(row):
    """Print a row as soon as it is there, and return it."""
    print("  ".join(f"{name} {short(value)}" for name, value in row.items()), flush=True)
    return row


def write(path, module, rows):
    """Write *rows*, if to a *path*, with the command that ran *module* and what it ran with."""
    if path is None:
        return
    arguments = [each for each in sys.argv[1:] if "json" not in each]
    run = {
        "command": shlex.join(["python", "-m", module, *arguments]),
        "date": datetime.now(timezone.utc).date().isoformat(),
        "versions": {
            "Python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        "rows": [{name: short(value) for name, value in row.items()} for row in rows],
    }
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


def short(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


def read(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def digest(name):
    """Return what a figure bears of the run that it was drawn from."""
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


def ratio(row, name):
    """Return the ratio ``a/b`` of *row* to two digits: as it was measured, or else of a and b."""
    one, _, other = name.partition("/")
    value = row[name] if name in row else row[one] / row[other]
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:#.2g}"


def ratio_of(text):
    """Return the ratio that *text* names, such as ``pop 1000 90 Scrapy/ours``."""
    name, *varied, wanted = text.split()
    (row,) = (
        row
        for row in read(name)["rows"]
        if [str(value) for value in row.values()][: len(varied)] == varied
    )
    return ratio(row, wanted)
