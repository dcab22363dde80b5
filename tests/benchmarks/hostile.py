"""What a hostile robots.txt of 500 KiB, and a hostile URL of 8 KiB, can cost.

    python -m tests.benchmarks.hostile

For each file: the time of a parse until rules are ready, beside that of a plain file of rules of the
same size; its peak memory; what each doubling of the file costs; and the worst verdict.
"""

from __future__ import annotations

import gc
import time
import tracemalloc

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
        start = time.perf_counter()
        function(*values)
        best = min(best, time.perf_counter() - start)
    return best


def peak(body):
    gc.collect()
    tracemalloc.start()
    parse(body)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def main():
    plain = fastest(parse, PLAIN(MAX_BODY_BYTES))
    print(f"plain file of {MAX_BODY_BYTES:,} bytes: {plain * 1e3:.1f} ms")
    print(
        f"{'file':<34} {'parse':>9} {'x plain':>8} {'doubling':>12} {'peak':>10} {'worst verdict':>14}"
    )
    for name, make in {"plain rules": PLAIN, **FILES}.items():
        times = [fastest(parse, make(size)) for size in SIZES]
        doublings = " ".join(f"{after / before:.1f}" for before, after in zip(times, times[1:]))
        rules = parse(make(MAX_BODY_BYTES))
        worst = max(
            (fastest(rules.verdict_for, target_of(url), rounds=2), kind)
            for kind, url in URLS(make(MAX_BODY_BYTES)).items()
        )
        print(
            f"{name:<34} {times[-1] * 1e3:>6.1f} ms {times[-1] / plain:>7.1f}x {doublings:>12}"
            f" {peak(make(MAX_BODY_BYTES)) / 2**20:>6.1f} MiB {worst[0] * 1e3:>7.2f} ms ({worst[1]})",
            flush=True,
        )
    worst = max((fastest(target_of, url, rounds=3), kind) for kind, url in URLS(b"").items())
    print(f"target_of a URL of 8 KiB: at most {worst[0] * 1e3:.2f} ms ({worst[1]})")


if __name__ == "__main__":
    main()
