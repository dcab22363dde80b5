"""Run many seeds: ``python -m tests.simulation --seeds 100000``, or one: ``--seed 17``."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections import Counter
from contextlib import nullcontext
from multiprocessing import Pool

from tests.simulation.breakages import BREAKAGES, broken
from tests.simulation.world import ViolationError, simulate


def run(task):
    seed, breakage = task
    logging.disable(logging.CRITICAL)
    with broken(breakage) if breakage else nullcontext():
        try:
            world = simulate(seed)
        except ViolationError as violation:
            return seed, str(violation), 0, 0, 0, {}
    return seed, None, world.loop.steps, world.requests, world.fetches, dict(world.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="run this one, and show what the keepers log")
    parser.add_argument("--break", dest="breakage", choices=BREAKAGES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.seed is not None:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s")
        with broken(options.breakage) if options.breakage else nullcontext():
            simulate(options.seed)
        return 0
    start = time.monotonic()
    steps = requests = fetches = 0
    faults, failed = Counter(), []
    seeds = range(options.first, options.first + options.seeds)
    with Pool(options.jobs) as pool:
        tasks = ((seed, options.breakage) for seed in seeds)
        for done, result in enumerate(pool.imap_unordered(run, tasks, 20), 1):
            seed, violation, *numbers, kinds = result
            steps, requests, fetches = map(
                sum, zip((steps, requests, fetches), numbers, strict=True)
            )
            faults.update(kinds)
            if violation:
                failed.append(seed)
                print(violation, flush=True)
            if done % 5_000 == 0:
                print(f"{done} seeds, {steps} steps, {len(failed)} failed", flush=True)
    seconds = time.monotonic() - start
    print(
        f"{len(seeds)} seeds in {seconds:.0f} s: {steps} steps, {requests} requests, {fetches} fetches"
    )
    for kind, count in faults.most_common():
        print(f"{count:10}  {kind}")
    print(f"{len(failed):10}  seeds failed; one alone: python -m tests.simulation --seed N")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
