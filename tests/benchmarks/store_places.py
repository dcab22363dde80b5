"""Records of a million origins, and the two places that keep them: ours and a plain one beside it."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path
from time import time

from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.stores.sqlite import SQLiteStore
from tests.benchmarks.origins import MISSING, SEED
from tests.redis_server import RedisServer

AT_ONCE = 1_000
DAY = 86_400.0
MAX_SIZE = 512_000


def origin_of(number):
    return f"https://site-{number}.example"


def record_of(number, at, bodies):
    """The record of an origin; the same each time, but for ``at``."""
    url = f"{origin_of(number)}/robots.txt"
    chance = random.Random(number + SEED)
    if chance.random() < MISSING:
        return Record(SiteFile.from_key(origin_of(number)), Unavailable(Evidence(at, url, 404)))
    body = chance.choice(bodies)
    seen = Evidence(at, url, 200, size=len(body), cache_control="max-age=86400")
    outcome = Available(body, seen)
    return Record(SiteFile.from_key(origin_of(number)), outcome, outcome)


class SQLite:
    """A file of ours, and a plain table in another one."""

    peer = "plain table"

    def __init__(self, folder):
        self.path = Path(folder, "robots.sqlite")
        self.uri = f"sqlite:///{self.path}"
        self.plain = sqlite3.connect(Path(folder, "plain.sqlite"), isolation_level=None)
        self.plain.execute("PRAGMA journal_mode = WAL")
        self.plain.execute("PRAGMA synchronous = NORMAL")
        self.plain.execute("CREATE TABLE plain (origin TEXT PRIMARY KEY, data BLOB)")

    def store(self, max_age=60 * DAY, max_bytes=2**34):
        return SQLiteStore(
            self.path,
            max_size=MAX_SIZE,
            max_age=max_age,
            max_bytes=max_bytes,
            timeout=30.0,
            clock=time,
        )

    def plain_put(self, rows):
        self.plain.execute("BEGIN")
        self.plain.executemany("REPLACE INTO plain VALUES (?, ?)", rows)
        self.plain.execute("COMMIT")

    def plain_get(self, origin):
        return self.plain.execute("SELECT data FROM plain WHERE origin = ?", (origin,)).fetchone()

    def plain_list(self):
        return sum(1 for _ in self.plain.execute("SELECT origin, data FROM plain"))

    def sizes(self):
        self.plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self.path.stat().st_size, Path(self.path.parent, "plain.sqlite").stat().st_size

    def forget(self):
        """Take the file out of the memory of the system, as after a start of the machine."""
        for path in self.path.parent.glob("*.sqlite"):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self):
        self.plain.close()


class Redis:
    """A Redis of our own with records of ours, and plain keys in another database of it."""

    peer = "plain pipeline"

    def __init__(self, folder):
        from redis import Redis

        self.server = RedisServer(folder)
        self.uri = self.server.uri
        self.ours = self.server.client
        self.plain = Redis(port=self.server.port, db=1)
        self.empty = self.plain.info("memory")["used_memory"]

    def store(self, max_age=60 * DAY, max_bytes=None):
        from scrapy_rep.stores.redis import RedisStore

        return RedisStore(
            self.uri, prefix="robots:", max_size=MAX_SIZE, max_age=max_age, timeout=30.0
        )

    def plain_put(self, rows):
        with self.plain.pipeline(transaction=False) as pipeline:
            for origin, data in rows:
                pipeline.set(origin, data)
            pipeline.execute()

    def plain_get(self, origin):
        return self.plain.get(origin)

    def plain_list(self):
        count = 0
        for origins in batches(self.plain.scan_iter(count=AT_ONCE)):
            count += len(self.plain.mget(origins))
        return count

    def sizes(self):
        both = self.plain.info("memory")["used_memory"] - self.empty
        self.plain.flushdb()
        ours = self.plain.info("memory")["used_memory"] - self.empty
        return ours, both - ours

    def forget(self):
        pass

    def close(self):
        self.plain.close()
        self.server.stop()


def batches(items):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
