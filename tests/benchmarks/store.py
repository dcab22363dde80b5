"""A store with a million origins: ``python -m tests.benchmarks.store [sqlite|redis] [--records 1000000]``.

The records are those of robots.txt files of the corpus (see CONTRIBUTING.md), 30 % are 404. They are
written thousand by thousand, and in turns the same bytes to a plain table of SQLite, or by a plain
pipeline to Redis. Then come lookups, ``scrapy robots cache list``, and half of the records go while
others look up: another process prunes, then the store prunes itself while it is written to, as it
is before without a need to. Last comes what it would spare to keep equal texts once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from contextlib import closing, suppress
from pathlib import Path
from time import perf_counter, time

from scrapy_rep.protocol.outcome import Evidence, Unavailable
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from tests.benchmarks.origins import SEED
from tests.benchmarks.store_places import (
    AT_ONCE,
    DAY,
    MAX_SIZE,
    Redis,
    SQLite,
    batches,
    origin_of,
    record_of,
)
from tests.protocol import corpus

LOOKS = 20_000
SECONDS = 15


async def fill(place, count, bodies):
    """Write all records; print how many a second."""
    store, now = place.store(), time()
    encoding = ours = plain = 0.0
    for numbers in batches(range(count)):
        records = [record_of(n, now, bodies) for n in numbers]
        start = perf_counter()
        rows = [(record.file.key, record.encode()) for record in records]
        encoded = perf_counter()
        await asyncio.gather(*map(store.put, records))
        written = perf_counter()
        place.plain_put(rows)
        encoding += encoded - start
        ours += written - encoded
        plain += perf_counter() - written
    start = perf_counter()
    await store.close()
    ours += perf_counter() - start
    print(
        f"writes a second, {AT_ONCE} at once: {count / ours:,.0f}, of that {encoding / ours:.0%} for"
        f" encoding; {place.peer} with what is encoded {count / plain:,.0f}:"
        f" ratio without encoding {(ours - encoding) / plain:.2f}"
    )


async def refresh(place, count, bodies):
    """Write some again, here and there, as the next crawl does."""
    store, now = place.store(), time()
    ours = plain = 0.0
    for numbers in batches(random.Random(SEED).sample(range(count), min(count, 2 * LOOKS))):
        records = [record_of(n, now, bodies) for n in numbers]
        rows = [(record.file.key, record.encode()) for record in records]
        start = perf_counter()
        await asyncio.gather(*map(store.put, records))
        written = perf_counter()
        place.plain_put(rows)
        ours += written - start
        plain += perf_counter() - written
    await store.close()
    count = min(count, 2 * LOOKS)
    print(
        f"writes of what is there, here and there: {count / ours:,.0f} a second, encoding included;"
        f" {place.peer} {count / plain:,.0f}",
        flush=True,
    )


async def look(place, count):
    """Look up, at first in what the system does not hold in memory."""
    place.forget()
    store = place.store()
    start = perf_counter()
    await store.get(origin_of(count // 2))
    first = perf_counter() - start
    start = perf_counter()
    place.plain_get(origin_of(count // 2))
    print(
        f"first lookup after opening: {1e3 * first:.1f} ms;"
        f" {place.peer}, open already: {1e3 * (perf_counter() - start):.1f} ms"
    )
    for at_once in (1, 100):
        ours = plain = 0.0
        chance = random.Random(SEED)
        for _ in range(LOOKS // at_once):
            origins = [origin_of(chance.randrange(count)) for _ in range(at_once)]
            start = perf_counter()
            await asyncio.gather(*map(store.get, origins))
            done = perf_counter()
            for origin in origins:
                Record.decode(held(place.plain_get(origin)), origin, max_size=MAX_SIZE)
            ours += done - start
            plain += perf_counter() - done
        print(
            f"lookups a second, {at_once} at once: {LOOKS / ours:,.0f};"
            f" {place.peer}, and decoded: {LOOKS / plain:,.0f}: ratio {ours / plain:.2f}"
        )
    await store.close()


def held(found):
    return found[0] if isinstance(found, tuple) else found


def listing(place, count):
    """``scrapy robots cache list``: its first line, its end and its memory; then into head."""
    command = [sys.executable, "-m", "scrapy", "robots", "cache", "list"]
    # Outside of a project a store is named as here.
    command += ["-s", f"REP_STORE={place.uri}"]
    start = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder)
        process.stdout.readline()
        first = perf_counter() - start
        lines = 1 + sum(1 for _ in process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
        took = perf_counter() - start
        start = perf_counter()
        place.plain_list()
        plain = perf_counter() - start
        start = perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder)
        head = ["head", "-n", "1"]
        read = subprocess.check_output(head, stdin=process.stdout)
        process.stdout.close()
        process.wait()
    print(
        f"cache list: {lines:,} lines, status {os.waitstatus_to_exitcode(status)}, first line after"
        f" {first:.1f} s, {took:.0f} s ({lines / took:,.0f} a second; {place.peer} read through:"
        f" {count / plain:,.0f}), at most {usage.ru_maxrss / 1024:.0f} MiB; into head:"
        f" {len(read.splitlines())} line, {perf_counter() - start:.1f} s",
        flush=True,
    )


class WaitingRequests:
    """Looks up and counts the ticks of an event loop, and knows the longest wait of each."""

    def __init__(self, store, count):
        self.store = store
        self.count = count
        self.looks = []
        self.tick = 0.0
        self.tasks = [asyncio.ensure_future(each()) for each in (self.look, self.ticking)]

    async def look(self):
        while True:
            start = perf_counter()
            await self.store.get(origin_of(random.randrange(self.count)))
            self.looks.append(perf_counter() - start)
            await asyncio.sleep(0.001)

    async def ticking(self):
        while True:
            start = perf_counter()
            await asyncio.sleep(0.001)
            self.tick = max(self.tick, perf_counter() - start)

    async def end(self):
        for task in self.tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self.looks.sort()
        return (
            f"lookups {len(self.looks)}, median {1e3 * self.looks[len(self.looks) // 2]:.1f} ms,"
            f" longest {1e3 * self.looks[-1]:.0f} ms; longest tick of the loop {1e3 * self.tick:.0f} ms"
        )


async def at_rest(place, count):
    waits = WaitingRequests(store := place.store(), count)
    await asyncio.sleep(5)
    print(f"at rest: {await waits.end()}", flush=True)
    await store.close()


async def prune_elsewhere(place, count):
    """Another process prunes, to which a quarter is too old."""
    store = place.store()
    with closing(sqlite3.connect(place.path)) as connection:
        age = f"UPDATE records SET written = written - {2 * DAY} WHERE rowid % 4 = 0"
        connection.execute(age)
        connection.commit()
    code = "import sys; from tests.benchmarks.store import prune; prune(sys.argv[1])"
    command = [sys.executable, "-c", code, str(place.path)]
    waits = WaitingRequests(store, count)
    start = perf_counter()
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    longest = written = 0
    ended = asyncio.ensure_future(process.communicate())
    while not ended.done():
        put = perf_counter()
        await store.put(
            Record(SiteFile.from_key(origin_of(written)), Unavailable(Evidence(time(), "x", 404)))
        )
        longest = max(longest, perf_counter() - put)
        written += 1
        await asyncio.sleep(0.01)
    took = perf_counter() - start
    pruned = int((await ended)[0])
    print(
        f"another process prunes: {pruned:,} in {took:.1f} s, {pruned / took:,.0f} a second;"
        f" {await waits.end()}; longest write {1e3 * longest:.0f} ms",
        flush=True,
    )
    await store.close()


async def expire(place, count):
    """A quarter of what a Redis has comes to its end at one moment."""
    store = place.store()
    end = time() + 5 + count / 20_000
    for numbers in batches(range(0, count, 4)):
        with place.ours.pipeline(transaction=False) as pipeline:
            for number in numbers:
                key = f"robots:record:{{{origin_of(number)}}}"
                pipeline.pexpireat(key, int(1e3 * end))
            pipeline.execute()
    before = place.ours.dbsize()
    await asyncio.sleep(end - time())
    waits, start = WaitingRequests(store, count), perf_counter()
    while place.ours.dbsize() > before - count // 4 and perf_counter() - start < 60:
        await asyncio.sleep(0.1)
    took = perf_counter() - start
    gone = before - place.ours.dbsize()
    print(f"{gone:,} records end at once, in {took:.1f} s: {await waits.end()}", flush=True)
    await store.close()


def prune(path):
    """Drop what is older than a day."""
    place = SQLite.__new__(SQLite)
    place.path = Path(path)
    store = place.store(max_age=DAY)
    print(asyncio.run(store.prune()))


async def prune_itself(place, count, bodies, share):
    """The store may have a share of what it has, and is written to, 100 at once."""
    size = place.path.stat().st_size
    store = place.store(max_bytes=int(size * share))
    waits = WaitingRequests(store, count)
    longest, written, start = 0.0, 0, perf_counter()
    while perf_counter() - start < SECONDS:
        records = [record_of(count + written + n, time(), bodies) for n in range(100)]
        put = perf_counter()
        await asyncio.gather(*map(store.put, records))
        longest = max(longest, perf_counter() - put)
        written += 100
        await asyncio.sleep(0)
    took = perf_counter() - start
    told = await waits.end()
    await store.close()
    print(
        f"written to, 100 at once, and it may have {share:g} of its size: from {size / 2**20:,.0f}"
        f" MiB to {place.path.stat().st_size / 2**20:,.0f} MiB in {took:.0f} s; {told}; writes"
        f" {written / took:,.0f} a second, longest of 100 {1e3 * longest:.0f} ms",
        flush=True,
    )


def copies(bodies):
    """Print what it would spare to keep equal texts once."""
    records = [record_of(n, 1e9, [body]) for n, body in enumerate(bodies)]
    whole = sum(len(record.encode()) for record in records)
    texts = [record.copy.body for record in records if record.copy is not None]
    spared = sum(map(packed, texts)) - sum(map(packed, set(texts)))
    share = sum(map(packed, texts)) / whole
    print(
        f"of {len(records)} records {len(texts) - len(set(texts))} have the text of another one:"
        f" {whole / len(records):,.0f} bytes each, of that {share:.0%} compressed text;"
        f" equal texts kept once would spare {spared / whole:.1%}"
    )


def packed(body):
    return len(zlib.compress(body))


async def measure(place, count, bodies):
    await fill(place, count, bodies)
    await look(place, count)
    await refresh(place, count, bodies)
    listing(place, count)
    ours, plain = place.sizes()
    print(
        f"{count:,} records: {ours / count:,.0f} bytes each, {ours / 2**20:,.0f} MiB;"
        f" {place.peer} {plain / count:,.0f}: ratio {ours / plain:.2f}"
    )
    await at_rest(place, count)
    if isinstance(place, Redis):
        await expire(place, count)
    else:
        await prune_elsewhere(place, count)
        for share in (2, 0.5):
            await prune_itself(place, count, bodies, share)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("store", nargs="?", choices=["sqlite", "redis"], default="sqlite")
    parser.add_argument("--records", type=int, default=1_000_000)
    options = parser.parse_args()
    # A crawl keeps no more of a file.
    bodies = [body[:MAX_SIZE] for _, body, _ in corpus.read("files")]
    with tempfile.TemporaryDirectory() as folder:
        place = {"sqlite": SQLite, "redis": Redis}[options.store](folder)
        try:
            asyncio.run(measure(place, options.records, bodies))
        finally:
            place.close()
    copies(bodies)


if __name__ == "__main__":
    main()
