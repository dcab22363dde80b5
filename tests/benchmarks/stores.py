"""What a store costs: ``python -m tests.benchmarks.stores [ORIGINS]``.

The hot path with SQLite against memory, in turns in one process; what an origin that a store knows
costs, and a turn, against memory; and the memory of the level in front of them. A store with a
million records is measured by ``tests.benchmarks.store``.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
import tempfile
from pathlib import Path
from time import perf_counter, time

from scrapy import Request
from scrapy.utils.test import get_crawler

from scrapy_rep import RobotsTxtMiddleware
from scrapy_rep.cache.cache import Entry
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.policy import Policy
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite import SQLiteStore
from scrapy_rep.utils.bounded import BoundedCache
from tests.redis_server import PROGRAM, RedisServer

BODY = "User-agent: *\n" + "".join(f"Disallow: /private/{n}/\n" for n in range(20))
AT_ONCE = 1_000
REQUESTS = 5_000
ROUNDS = 100


def record_of(number, at):
    origin = f"https://site-{number}.example"
    body = f"# {number}\n{BODY}Sitemap: {origin}/sitemap.xml\n".encode()
    seen = Evidence(at, f"{origin}/robots.txt", 200, size=len(body), cache_control="max-age=3600")
    outcome = Available(body, seen)
    return Record(SiteFile.from_key(origin), outcome, outcome)


def resident_mib():
    return int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def hot_path(directory):
    """Seconds per request that is known, memory and SQLite in turns; the ratio of the best."""
    middlewares = {}
    for uri in ("memory://", f"sqlite:///{directory}/hot.sqlite"):
        settings = {
            "ROBOTSTXT_OBEY": True,
            "REP_STORE": uri,
            "USER_AGENT": "bot",
            "ADDONS": {"scrapy_rep.Addon": 1},
        }
        crawler = get_crawler(settings_dict=settings)
        middlewares[uri] = middleware = RobotsTxtMiddleware.from_crawler(crawler)
        for number in range(100):
            record = record_of(number, time())
            middleware._cache.put_record(record.file.origin, record, ("bot",))
    requests = [Request(f"https://site-{n % 100}.example/page/{n}") for n in range(REQUESTS)]
    memory, sqlite = middlewares.values()
    seconds = {memory: [], sqlite: []}
    for _ in range(ROUNDS):
        for middleware in random.sample([memory, sqlite], 2):
            process = middleware.process_request
            start = perf_counter()
            for request in requests:
                process(request)
            seconds[middleware].append(perf_counter() - start)
    # The best of many: what else the machine does only ever adds.
    ratio = min(seconds[sqlite]) / min(seconds[memory])
    best = min(seconds[memory]) / REQUESTS * 1e6
    print(f"hot path: {best:.2f} us a request in memory; SQLite / memory = {ratio:.3f}", flush=True)


async def known_origins(directory):
    """What it costs to look up an origin that a store knows, and to reserve a turn, above memory."""
    sizes = {"max_bytes": 2**26, "max_size": 512_000}
    bounds = {"max_size": 512_000, "max_age": 5e6, "timeout": 30.0}
    path = directory / "turns.sqlite"
    stores = {
        "memory": MemoryStore(**sizes),
        "SQLite": SQLiteStore(path, **bounds, max_bytes=2**33, clock=time),
    }
    server = None
    if PROGRAM is not None:
        from scrapy_rep.stores.redis import RedisStore

        server = RedisServer(directory)
        stores["Redis"] = RedisStore(server.uri, prefix="robots:", **bounds)
    origins = [f"https://site-{n}.example" for n in range(AT_ONCE)]
    for name, store in stores.items():
        await asyncio.gather(*(store.put(record_of(n, time())) for n in range(AT_ONCE)))
        told = []
        for what, call in (
            ("lookup", store.get),
            ("lease", lambda origin, store=store: store.claim(f"host:{origin}", "a", 2.0)),
        ):
            took = []
            for origin in origins:
                start = perf_counter()
                await call(origin)
                took.append(perf_counter() - start)
            start = perf_counter()
            await asyncio.gather(*(call(origin) for origin in origins))
            rate = AT_ONCE / (perf_counter() - start)
            median = sorted(took)[AT_ONCE // 2] * 1e3
            told.append(f"{what}: median {median:.3f} ms, {rate:,.0f} a second, {AT_ONCE} at once")
        print(f"{name}: {'; '.join(told)}", flush=True)
        await store.close()
    if server is not None:
        server.stop()


def memory_level(count):
    """The in-memory level, told of as many origins, at its default bounds."""
    entries = BoundedCache(max_bytes=2**28)
    policy, before = Policy(), resident_mib()
    for number in range(count):
        record = record_of(number, 0.0)
        entry = Entry(policy.access(record, 1.0))
        entry.add_rules(("bot",), RobotsTxt.parse(record.copy.body))
        entries.put(record.file.origin, entry, entry.nbytes)
        if number == count // 4:
            print(
                f"in-memory level: {before:.0f} MiB before, {resident_mib():.0f} MiB at a quarter",
                end="",
            )
    print(f", {resident_mib():.0f} MiB at the end; {len(entries)} of {count} origins held")


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    with tempfile.TemporaryDirectory() as directory:
        hot_path(Path(directory))
        asyncio.run(known_origins(Path(directory)))
    memory_level(count)


if __name__ == "__main__":
    main()
