"""A store with a million origins: ``python -m tests.benchmarks.store [sqlite|redis] [--records 1000000]``.

The records are those of robots.txt files of the corpus (see CONTRIBUTING.md), 30 % are 404. Printed are
how many origins are in memory at most; writes a second, a thousand at once; the size of a record; the
first lookup after opening, at first in what the system does not hold in memory, and lookups a second.
"""

import argparse
import asyncio
import os
import random
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter, time

from scrapy_rep.cache.entry import Entry
from scrapy_rep.protocol.fetch_policy import Policy
from scrapy_rep.protocol.origin import origin_of as parse
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.record import Record
from scrapy_rep.settings import Options
from scrapy_rep.stores.sqlite import SQLiteStore
from scrapy_rep.utils.bounded import BoundedCache
from tests.benchmarks.origins import MISSING, SEED, peak_mib
from tests.protocol import corpus
from tests.redis_server import RedisServer

AT_ONCE = 1_000
LOOKS = 20_000
SIZES = {"max_age": 60 * 86_400.0, "timeout": 30.0}
BODY = "User-agent: *\n" + "".join(f"Disallow: /private/{n}/\n" for n in range(20))


def origin_of(number):
    return f"https://site-{number}.example"


def record_of(number, at, bodies, missing=MISSING):
    """The record of an origin; the same each time, but for ``at``."""
    origin, url = parse(origin_of(number)), f"{origin_of(number)}/robots.txt"
    chance = random.Random(number + SEED)
    if chance.random() < missing:
        return Record(origin, Unavailable(Evidence(at, url, 404)))
    body = chance.choice(bodies)
    seen = Evidence(at, url, 200, size=len(body), cache_control="max-age=86400")
    outcome = Available(body, seen)
    return Record(origin, outcome, outcome)


def in_memory(count):
    """Print how many origins are in memory, at the default bound, of as many that came."""
    entries, policy = BoundedCache(max_bytes=Options().memory_max_bytes), Policy()
    before = peak_mib()
    for number in range(count):
        record = record_of(number, 0.0, [f"# {number}\n{BODY}".encode()], missing=0)
        entry = Entry(policy.access(record, 1.0))
        entry.add_rules(("bot",), RobotsTxt.parse(record.copy.body))
        entries.put(record.origin, entry, entry.nbytes)
    print(f"in memory: {len(entries):,} of {count:,} origins, {peak_mib() - before:.0f} MiB")


async def measure(make, size, count, bodies):
    """*make* makes a store; *size* returns the bytes of all that it has."""
    store, numbers, seconds = make(), iter(range(count)), 0.0
    while some := [*islice(numbers, AT_ONCE)]:
        records = [record_of(number, time(), bodies) for number in some]
        start = perf_counter()
        await asyncio.gather(*map(store.put, records))
        seconds += perf_counter() - start
    await store.close()
    print(f"writes a second, {AT_ONCE} at once, encoding included: {count / seconds:,.0f}")
    print(f"{count:,} records: {size() / count:,.0f} bytes each, {size() / 2**20:,.0f} MiB")
    store, start = make(), perf_counter()
    await store.get(origin_of(count // 2))
    print(f"first lookup after opening: {1e3 * (perf_counter() - start):.1f} ms")
    for at_once in (1, 100):
        chance, start = random.Random(SEED), perf_counter()
        for _ in range(LOOKS // at_once):
            origins = [origin_of(chance.randrange(count)) for _ in range(at_once)]
            await asyncio.gather(*map(store.get, origins))
        print(f"lookups a second, {at_once} at once: {LOOKS / (perf_counter() - start):,.0f}")
    await store.close()


def in_sqlite(folder, count, bodies):
    path = Path(folder, "robots.sqlite")

    def make():
        """Open it, out of the memory of the system, as after a start of the machine."""
        if path.exists():
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return SQLiteStore(path, **SIZES, max_bytes=2**34, clock=time)

    def size():
        return path.stat().st_size

    asyncio.run(measure(make, size, count, bodies))


def in_redis(folder, count, bodies):
    from scrapy_rep.stores.redis import RedisStore

    server = RedisServer(folder)
    empty = server.client.info("memory")["used_memory"]

    def size():
        return server.client.info("memory")["used_memory"] - empty

    def make():
        return RedisStore(server.uri, prefix="robots:", **SIZES)

    try:
        asyncio.run(measure(make, size, count, bodies))
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", nargs="?", choices=["sqlite", "redis"], default="sqlite")
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    # A crawl keeps no more of a file.
    bodies = [body[: SIZES["max_size"]] for _, body, _ in corpus.read("files")]
    in_memory(min(options.records, 100_000))
    with tempfile.TemporaryDirectory() as folder:
        (in_redis if options.store == "redis" else in_sqlite)(folder, options.records, bodies)


if __name__ == "__main__":
    main()
