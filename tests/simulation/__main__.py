"""Run many seeds: ``python -m tests.simulation --seeds 100000``, or one: ``--seed 17``.

``--workers 200 --origins 100000 --requests 300000`` makes each seed so large.
"""

import argparse
import logging
import os
import sys
from collections import Counter
from contextlib import nullcontext
from multiprocessing import Pool

from tests.simulation import turns
from tests.simulation.breakages import BREAKAGES, broken
from tests.simulation.loop import ViolationError

SIZES = ("workers", "origins", "requests")


def run(task):
    """Return what a seed violates, or None, and how many steps, pages and faults of a kind it has."""
    seed, breakage, sizes = task
    with broken(breakage) if breakage else nullcontext():
        try:
            fleet = turns.simulate(seed, **sizes)
        except ViolationError as violation:
            return str(violation), {}
    return None, {"steps": fleet.loop.steps, "pages sent": fleet.sent, **fleet.faults}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--seed", type=int, help="run this one, and show what the stores log")
    parser.add_argument("--break", dest="breakage", choices=BREAKAGES)
    for size in SIZES:
        parser.add_argument(f"--{size}", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    sizes = {size: getattr(options, size) for size in SIZES}
    if options.seed is not None:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s")
        violation, _ = run((options.seed, options.breakage, sizes))
        print(violation or "nothing is violated")
        return bool(violation)
    logging.disable(logging.CRITICAL)
    counts, failed = Counter(), 0
    seeds = range(options.seeds)
    with Pool(options.jobs) as pool:
        tasks = ((seed, options.breakage, sizes) for seed in seeds)
        for violation, found in pool.imap_unordered(run, tasks, 1 if options.requests else 20):
            counts.update(found)
            if violation:
                failed += 1
                print(violation, flush=True)
    for kind, count in counts.most_common():
        print(f"{count:10}  {kind}")
    print(
        f"{failed:10}  seeds of {len(seeds)} failed; one alone: python -m tests.simulation --seed N"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
