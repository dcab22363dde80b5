"""What a hostile robots.txt of 500 KiB, and a hostile URL of 8 KiB, can cost.

    python -m tests.benchmarks.hostile

For each file: the time of a parse until rules are ready, beside that of a plain file of rules of
the same size; what each doubling of the file costs (125, 250, 500 KiB); peak memory; the worst
verdict of all the URLs.
"""

import gc
import time
import tracemalloc
from itertools import pairwise

from scrapy_rep.protocol import RobotsTxt, target_of
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from tests.protocol.hostile import FILES, PLAIN, URLS

SIZES = (MAX_BODY_BYTES // 4, MAX_BODY_BYTES // 2, MAX_BODY_BYTES)


def parse(body):
    return RobotsTxt.parse(body).rules_for("Scrapy")


def fastest(function, *values, rounds=5):
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        function(*values)
        best = min(best, time.process_time() - start)
    return best


def peak(body):
    gc.collect()
    tracemalloc.start()
    parse(body)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def main():
    heading = ("file", "parse", "x plain", "doubling", "peak", "worst verdict")
    print("{:<36} {:>9} {:>8} {:>9} {:>10} {:>13}".format(*heading))
    for name, make in {"plain rules": PLAIN, **FILES}.items():
        bodies = [make(size) for size in SIZES]
        plain_body, times, plain = PLAIN(MAX_BODY_BYTES), [9.0] * 3, 9.0
        for _ in range(3):  # in turns, so that a noisy moment hits all of them
            plain = min(plain, fastest(parse, plain_body, rounds=1))
            times = [
                min(before, fastest(parse, body, rounds=1))
                for before, body in zip(times, bodies, strict=True)
            ]
        doublings = " ".join(f"{after / before:.1f}" for before, after in pairwise(times))
        rules = parse(bodies[-1])
        worst, kind = max(
            (fastest(rules.verdict_for, target_of(url), rounds=2), kind)
            for kind, url in URLS(bodies[-1]).items()
        )
        print(
            f"{name:<36} {times[-1] * 1e3:>6.1f} ms {times[-1] / plain:>7.1f}x {doublings:>9}"
            f" {peak(bodies[-1]) / 2**20:>6.1f} MiB {worst * 1e3:>7.2f} ms ({kind})",
            flush=True,
        )
    worst, kind = max((fastest(target_of, url, rounds=3), kind) for kind, url in URLS(b"").items())
    print(f"target_of a URL of 8 KiB: at most {worst * 1e3:.2f} ms ({kind})")


if __name__ == "__main__":
    main()
