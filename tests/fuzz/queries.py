"""Compare matching with the slow reference, on patterns and URLs with escapes in queries.

    python -m tests.fuzz.queries [EXAMPLES] [--seed N]

Each rule is asked alone. Prints how many verdicts differ, and some of them.
"""

import argparse
import random
import sys

from scrapy_rep.protocol import RobotsTxt
from tests.protocol import reference
from tests.protocol.made_up import pattern_and_path

SHOWN = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", type=int, nargs="?", default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    matching, different = 0, []
    for _ in range(options.examples):
        pattern, path = pattern_and_path(rng)
        body = f"user-agent: *\ndisallow: {pattern}\n".encode()
        verdict = RobotsTxt.parse(body).verdict(f"http://h{path}")
        expected = reference.verdict(body, path, ())
        matching += not expected[0]
        if (verdict.allowed, verdict.rule and len(verdict.rule.pattern)) != expected:
            different.append((pattern, path))
    print(f"{options.examples:,} verdicts, {matching:,} by a match, {len(different):,} differ")
    for pattern, path in different[:SHOWN]:
        print(f"  Disallow: {pattern}    {path}")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
