"""Run many seeds: ``python -m tests.simulation --seeds 100000``, or one: ``--seed 17``.

``--workers 200 --origins 100000 --requests 300000`` makes each seed
so large.
"""

import argparse
import logging
import os
import resource
import sys
import time
from collections import Counter
from contextlib import nullcontext
from multiprocessing import Pool

from tests.simulation import turns
from tests.simulation.breakages import BREAKAGES, broken
from tests.simulation.loop import START, ViolationError

SIZES = ("workers", "origins", "requests")


def run(task):
    seed, breakage, sizes = task
    logging.disable(logging.CRITICAL)
    with broken(breakage) if breakage else nullcontext():
        try:
            fleet = turns.simulate(seed, **sizes)
        except ViolationError as violation:
            return seed, str(violation), 0, 0, 0, 0.0, {}
    loop = fleet.loop
    return seed, None, loop.steps, fleet.requests, fleet.ends, loop.now - START, dict(fleet.faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="run this one, and show what the keepers log")
    parser.add_argument("--break", dest="breakage", choices=BREAKAGES)
    for size in SIZES:
        parser.add_argument(f"--{size}", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    sizes = {size: getattr(options, size) for size in SIZES}
    if options.seed is not None:
        logging.basicConfig(level=logging.DEBUG, format="%(message)s")
        with broken(options.breakage) if options.breakage else nullcontext():
            turns.simulate(options.seed, **sizes)
        return 0
    start = time.monotonic()
    steps = requests = fetches = passed = 0
    faults, failed = Counter(), []
    seeds = range(options.first, options.first + options.seeds)
    with Pool(options.jobs) as pool:
        tasks = ((seed, options.breakage, sizes) for seed in seeds)
        at_once = 1 if options.requests else 20
        for done, result in enumerate(pool.imap_unordered(run, tasks, at_once), 1):
            seed, violation, *numbers, kinds = result
            steps, requests, fetches, passed = map(
                sum, zip((steps, requests, fetches, passed), numbers, strict=True)
            )
            faults.update(kinds)
            if violation:
                failed.append(seed)
                print(violation, flush=True)
            if done % 5_000 == 0:
                print(f"{done} seeds, {steps} steps, {len(failed)} failed", flush=True)
        pool.close()
        pool.join()
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(
        f"{len(seeds)} seeds in {seconds:.0f} s: {steps} steps, {requests} requests, {fetches} sent;"
        f" {passed:.0f} s of made-up time, {fetches / passed:.3g} a second of it; peak memory of a"
        f" process {peak} MiB"
    )
    for kind, count in faults.most_common():
        print(f"{count:10}  {kind}")
    print(f"{len(failed):10}  seeds failed; one alone: python -m tests.simulation --seed N")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
