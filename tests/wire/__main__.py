"""The promises about time, measured on the wire: ``python -m tests.wire [--only CELL]``.

Each cell is a crawl with something between the queue and the wire, and hosts in a process of their own
tell when each request reached them. The columns: smallest gap to a host with ``Crawl-delay: 1``, and to
the control host, in seconds; requests in a pause of 5 s, and probes after it; pages served; requests
that ended, of those that were sent. How they are counted is in figures.py, what each cell is in
cells.py. The status is 1 if a cell broke a promise, or could not show it, or a positive control did not.
"""

import argparse
import fnmatch
import sys

from tests.wire import figures
from tests.wire.cells import CELLS
from tests.wire.run import run

COLUMNS = ("gap", "control", "pause", "probes", "pages")
MORE = ("rounds", "stale", "disallowed", "rate", "twice", "errors")


def verdict(cell, found):
    """Return what came of a cell, in words, and whether it is as it should be."""
    broken, unmeasured = figures.broken(cell, found), figures.unmeasured(cell, found)
    if cell.loses:
        missed = [name for name in cell.loses if name not in broken]
        return (
            f"NOT SEEN: {', '.join(missed)}" if missed else f"seen: {', '.join(broken)}",
            not missed,
        )
    words = [f"BROKEN: {', '.join(broken)}"] if broken else []
    words += [f"SHOWS NOTHING: {', '.join(unmeasured)}"] if unmeasured else []
    return "; ".join(words) or "kept", not words


def row(cell, found, said):
    figure = [text(found.get(name, "-")) for name in COLUMNS]
    ended = f"{found['ended']}/{found['yielded']}"
    more = [f"{name} {text(found[name])}" for name in MORE if found.get(name)]
    return (
        f"{cell.name:18} {' '.join(f'{each:>7}' for each in figure)} {ended:>9}"
        f"  {said}{' (' * bool(more)}{', '.join(more)}{')' * bool(more)}"
    )


def text(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.wire", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--only", action="append", metavar="CELL", help="a name, or a pattern; may be given again"
    )
    parser.add_argument("--log", action="store_true", help="print what reached the hosts, too")
    options = parser.parse_args()
    cells = [
        cell
        for cell in CELLS
        if not options.only or any(fnmatch.fnmatch(cell.name, only) for only in options.only)
    ]
    head = " ".join(f"{name:>7}" for name in COLUMNS)
    print(f"{'cell':18} {head} {'ended':>9}", flush=True)
    is_bad = False
    for cell in cells:
        found, lines = run(cell)
        said, is_good = verdict(cell, found)
        is_bad |= not is_good
        print(row(cell, found, said), flush=True)
        if options.log:
            print(*lines, *found["told"], sep="\n", flush=True)
    return is_bad


if __name__ == "__main__":
    sys.exit(main())
