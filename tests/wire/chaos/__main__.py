"""``python -m tests.wire.chaos --crawls 60 --seed 1 [--jobs 2] [--json FILE]``.

Each seed decides a crawl: see plan.py; judge.py has what breaks a promise. ``--control NAME`` breaks
one on purpose. A crawl gets smaller with ``--host ADDRESS`` (only these), ``--without PART`` and
``--set NAME=JSON``. The status is 1 if a promise was broken, or a control was not seen.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from tests.benchmarks import results
from tests.wire.cells import BEFORE, LAST
from tests.wire.chaos.judge import judge
from tests.wire.chaos.plan import part, plan
from tests.wire.chaos.run import run

KINDS = ("leak", "stale", "gap", "pause", "lost", "twice", "hang", "error")
CONTROLS = {
    "off": ("leak", "gap", "pause"),
    "forgets": ("lost", "hang"),
    "doubles": ("twice",),
    "complains": ("error",),
    "exempts": ("leak", "stale"),
}
"""What breaks promises on purpose, and which."""


def made(seed, options):
    """Return the plan of a seed, as the options want it."""
    found = plan(seed, options.mode)
    if options.host:
        for requests in found.requests:
            requests[:] = [each for each in requests if each["address"] in options.host]
    parts = found.settings["WIRE_PARTS"]
    parts[:] = [part for part in parts if part["kind"] not in options.without]
    for text in options.set:
        name, _, value = text.partition("=")
        if value:
            found.settings[name] = json.loads(value)
        else:
            found.settings.pop(name, None)
    if options.control == "off":
        found.settings |= {"ADDONS": {}, "ROBOTSTXT_OBEY": False}
        found.settings["SCHEDULER_PRIORITY_QUEUE"] = "scrapy.pqueues.ScrapyPriorityQueue"
    elif options.control:
        order = BEFORE if options.control == "exempts" else LAST
        parts.append(part(options.control, order, dict.fromkeys(found.hosts)))
    return found


def crawl(seed, options):
    made_plan = made(seed, options)
    began = time.monotonic()
    journal, processes = run(made_plan)
    found = judge(made_plan, journal, processes)
    row = {
        "seed": seed,
        "seconds": round(time.monotonic() - began, 1),
        "plan": made_plan.shows(),
        **vars(found),
    }
    return row, journal, processes


def print_row(row):
    smallest = "-" if row["smallest"] is None else f"{row['smallest']:.3f}"
    counts = " ".join(
        f"{name} {len(row['breaks'][name])}" for name in KINDS if row["breaks"].get(name)
    )
    print(
        f"{row['seed']:6} {row['seconds']:5} s {row['requests']:5} sent {row['forbidden']:4} forbidden "
        f"{row['delayed']:4} gaps {smallest:>6} {row['paused']:3} pauses  {counts or 'kept'}  [{row['plan']}]",
        flush=True,
    )
    for name in KINDS:
        for line in row["breaks"].get(name, ())[:4]:
            print(f"         {name}: {line[:1500]}", flush=True)


def print_sum(rows):
    gaps = [row["smallest"] for row in rows if row["smallest"] is not None]
    print(
        f"{len(rows)} crawls, {sum(row['requests'] for row in rows)} requests, "
        f"{sum(row['forbidden'] for row in rows)} forbidden, {sum(row['delayed'] for row in rows)} gaps, "
        f"smallest {min(gaps, default=0):.3f}, {sum(row['paused'] for row in rows)} pauses; "
        + ", ".join(
            f"{name} {sum(len(row['breaks'].get(name, ())) for row in rows)}" for name in KINDS
        )
    )


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.wire.chaos", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--crawls", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first crawl")
    parser.add_argument("--jobs", type=int, default=1, help="crawls at a time")
    parser.add_argument("--mode", help="asyncio, select or none")
    parser.add_argument("--control", choices=CONTROLS)
    parser.add_argument(
        "--host", action="append", default=[], help="only requests for this address"
    )
    parser.add_argument("--without", action="append", default=[], help="a kind of middleware")
    parser.add_argument("--set", action="append", default=[], help="NAME=JSON, or NAME= to unset")
    parser.add_argument("--log", help="a file for journal and logs")
    results.add_option(parser)
    options = parser.parse_args()
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.seed, options.seed + options.crawls)
        for row, journal, processes in pool.map(lambda seed: crawl(seed, options), seeds):
            rows.append(row)
            print_row(row)
            if options.log:
                with open(options.log, "w") as file:  # noqa: PTH123
                    entries = sorted(
                        (
                            (each["at"], address, each)
                            for address, found in journal.items()
                            for each in found
                        ),
                        key=lambda each: each[:2],
                    )
                    file.writelines(f"{at:.3f} {address} {each}\n" for at, address, each in entries)
                    for process in processes:
                        file.write(f"== worker {process.worker}\n")
                        file.writelines(json.dumps(each) + "\n" for each in process.journal)
                        file.write(process.log)
            if options.json:
                results.write(options.json, "tests.wire.chaos", rows)
    print_sum(rows)
    broken = {name for row in rows for name in KINDS if row["breaks"].get(name)}
    if options.control:
        missed = set(CONTROLS[options.control]) - broken
        print(f"not seen: {', '.join(sorted(missed))}" if missed else "the control is seen")
        return bool(missed)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
