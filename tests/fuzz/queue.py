"""Queue, admission and disk beside a plain list, in made-up time, on random numbers.

    python -m tests.fuzz.queue [--steps 1000000]
    python -m tests.fuzz.queue --seed SEED

``--seed`` runs one alone, and prints all that it does.
"""

import argparse
import time
from random import Random

from tests.scheduler.model import run

STEPS = 500
"""Of each seed."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int)
    options = parser.parse_args()
    if options.seed is not None:
        run(Random(options.seed), STEPS, print)
        return
    seeds = range(options.steps // STEPS)
    requests = 0
    start = time.monotonic()
    for seed in seeds:
        try:
            requests += run(Random(seed), STEPS)
        except BaseException:
            print(f"python -m tests.fuzz.queue --seed {seed}")
            raise
        if not (seed + 1) % 100:
            print(f"seed {seed}: {requests:,} requests", flush=True)
    took = time.monotonic() - start
    steps = len(seeds) * STEPS
    print(
        f"seeds 0 to {seeds[-1]}, {steps:,} steps, {requests:,} requests:"
        f" nothing found in {took:.0f} s, {steps / took:,.0f} steps a second"
    )


if __name__ == "__main__":
    main()
