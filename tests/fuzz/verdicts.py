"""Compare the engine with the slow reference on made-up files, as many as there is time for.

    python -m tests.fuzz.verdicts [EXAMPLES | --minutes N] [--seed N]

Minutes are of the processor.
Stops at the first file and URL on which they disagree, or on which the engine raises.
"""

import argparse
import random
import time

from tests.protocol import asking, made_up


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", type=int, nargs="?", default=100_000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    compared = decided = files = 0
    start = time.process_time()

    def is_done():
        if options.minutes is not None:
            return time.process_time() - start >= 60 * options.minutes
        return compared >= options.examples

    while not is_done():
        body = made_up.body(rng)
        files += 1
        asking.check_lines(body)
        for _ in range(4):
            compared += 1
            decided += asking.agreed(body, *made_up.path_and_tokens(rng)).rule is not None
    took = time.process_time() - start
    print(f"{compared:,} verdicts on {files:,} files agree ({decided:,} by a rule), {took:.0f} s")


if __name__ == "__main__":
    main()
