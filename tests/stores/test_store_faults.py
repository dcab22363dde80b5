"""A store that breaks in the middle of a crawl: nothing gets out, nobody waits long, little is lost."""

import ctypes
import logging
import os
import sqlite3
import subprocess
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred, gatherResults

from scrapy_rep.protocol.record import Record, RecordError
from scrapy_rep.stores import write_behind
from scrapy_rep.stores.base import Release
from scrapy_rep.stores.uri import display_name
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.concurrency import Clock
from tests.crawling.crawl import Lines, crawl, stat
from tests.crawling.web import RULES, answer, held, robots
from tests.redis_server import RedisServer, needs_redis
from tests.sql import execute
from tests.stores.records import ORIGIN, available, put
from tests.stores.test_contract import sqlite
from tests.waiting import PATIENCE, until, wait_until

DAY = 86_400
BOUND = 2
"""Calls of a broken store that its crawl makes, and waits for the end of, until it is told that time
has passed: one for reading and one for the lease."""
HANGS = {"paused", "locked by another program"}
SILENT = {"no fault", "flushed", "file removed", "records altered", "records of another type"}
HANGING = 10
"""So many seconds each of these calls is waited for where the store hangs."""


@pytest.fixture
def passes(monkeypatch):
    """A clock of the store that stands still; call it to let seconds pass."""
    now = 1_000.0

    def let_pass(seconds):
        nonlocal now
        now += seconds

    clock = Clock(monotonic=lambda: now)
    monkeypatch.setattr("scrapy_rep.stores.uri.WriteBehind", partial(WriteBehind, clock=clock))
    # A store that hangs ends its calls itself, after its timeout: on a machine that is busy the
    # write-behind would be first, and the call that it gave up could still come through.
    monkeypatch.setattr(write_behind, "_GRACE", PATIENCE)
    monkeypatch.setattr(write_behind, "_CLOSING", PATIENCE)
    return let_pass


class Failures(Lines):
    def __init__(self, uri):
        super().__init__(f"{display_name(uri)}: ")

    def emit(self, record):
        if record.levelno == logging.DEBUG:
            super().emit(record)


def readable(held):
    origins = set()
    for origin, (state, body) in held.items():
        with suppress(RecordError):
            Record.decode(state, body, origin)
            origins.add(origin)
    return origins


class Redis:
    """A Redis, and ways to break it."""

    def __init__(self, directory):
        needs_redis()
        self.server = RedisServer(directory)
        self.uri = self.server.uri
        self.client = self.server.client
        self.follow = self.client.replicaof

    def origins(self):
        self.client.config_set("maxmemory", 0)
        keys = [key.decode() for key in self.client.keys("robots:record:*")]
        held = {
            key.partition("record:")[2]: self.client.hmget(key, "state", "body") for key in keys
        }
        return readable(held)

    def fill(self):
        self.client.config_set("maxmemory-policy", "noeviction")
        self.client.config_set("maxmemory", 1)

    def alter(self):
        for key in self.client.keys("robots:record:*"):
            self.client.hset(key, "state", b"\x01\x00\x00\x00\x02{}")

    def close(self):
        self.server.stop()


class SQLite:
    """A file, and ways to break it."""

    def __init__(self, directory):
        self.directory = directory / "data"
        self.directory.mkdir()
        self.path = self.directory / "robots.sqlite"
        self.uri = f"sqlite:///{self.path}"
        self.other = None
        self.mounted = False

    def origins(self):
        rows = execute(self.path, "SELECT origin, state, body FROM records")
        return readable({origin: parts for origin, *parts in rows})

    def mount(self):
        """Put a disk of a megabyte there."""
        command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(self.directory)]
        if (
            os.name != "posix"
            or os.geteuid() != 0
            or subprocess.run(command, check=False).returncode
        ):
            pytest.skip("mounts a small disk, which takes root")
        self.mounted = True

    def alter(self, state):
        execute(self.path, f"UPDATE records SET state = {state}")

    def lock(self):
        self.other = sqlite3.connect(self.path, isolation_level=None)
        self.other.execute("BEGIN EXCLUSIVE")

    def fill(self):
        with Path(self.directory / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while filler.write(b"\0" * 4_096):
                pass

    def remove(self):
        for path in self.directory.iterdir():
            path.unlink()

    def move(self):
        self.directory.rename(self.directory.with_name("elsewhere"))
        self.directory.write_text("no directory any more")

    def move_back(self):
        self.directory.unlink()
        self.directory.with_name("elsewhere").rename(self.directory)

    def overwrite(self):
        execute(self.path, "PRAGMA wal_checkpoint(TRUNCATE)")
        with self.path.open("r+b") as file:
            file.write(b"\xff" * self.path.stat().st_size)

    def close(self):
        if self.other is not None:
            self.other.close()
        if self.mounted:
            ctypes.CDLL(None).umount2(str(self.directory).encode(), 2)


NOTHING = None
BEFORE = ("before",)
FOR_GOOD = ("broken", "after")
# fault, how it breaks, how it mends, records lost: those from before, or none
FAULTS_OF_REDIS = [
    ("no fault", NOTHING, NOTHING, ()),
    ("stopped, started again empty", lambda r: r.server.stop(), lambda r: r.server.start(), BEFORE),
    ("stopped for good", lambda r: r.server.stop(), NOTHING, None),
    ("flushed", lambda r: r.client.flushall(), NOTHING, BEFORE),
    ("paused", lambda r: r.server.pause(), lambda r: r.server.resume(), ()),
    ("out of memory", Redis.fill, lambda r: r.client.config_set("maxmemory", 0), ()),
    ("out of memory for good", Redis.fill, NOTHING, FOR_GOOD),
    (
        "turned into a replica",
        lambda r: r.follow("127.0.0.1", 1),
        lambda r: r.follow("NO", "ONE"),
        (),
    ),
    ("records altered", Redis.alter, NOTHING, BEFORE),
]
FAULTS_OF_A_FILE = [
    ("no fault", NOTHING, NOTHING, ()),
    ("locked by another program", SQLite.lock, lambda file: file.other.close(), ()),
    ("disk full", SQLite.fill, lambda file: (file.directory / "filler").unlink(), ()),
    ("disk full for good", SQLite.fill, NOTHING, FOR_GOOD),
    ("file removed", SQLite.remove, NOTHING, BEFORE),
    ("directory moved away, and back", SQLite.move, SQLite.move_back, ()),
    ("file overwritten", SQLite.overwrite, NOTHING, None),
    ("records altered", lambda file: file.alter("X'0100000002'"), NOTHING, BEFORE),
    ("records of another type", lambda file: file.alter("'a text'"), NOTHING, BEFORE),
]
CASES = [(Redis, *case) for case in FAULTS_OF_REDIS] + [
    (SQLite, *case) for case in FAULTS_OF_A_FILE
]


@pytest.mark.parametrize(
    ("kind", "fault", "breaks", "mends", "lost"),
    [pytest.param(*case, marks=[pytest.mark.first] if case[1] in HANGS else []) for case in CASES],
    ids=[f"{kind.__name__}: {fault}" for kind, fault, *_ in CASES],
)
async def test_a_store_that_breaks(
    web, tmp_path, request, passes, fault, kind, breaks, mends, lost
):
    store = kind(tmp_path)
    request.addfinalizer(store.close)
    if "disk" in fault:
        store.mount()
    phases = {name: web.site(robots(RULES)) for name in ("before", "broken", "after")}
    uri = f"{store.uri}?timeout={HANGING if fault in HANGS else PATIENCE}"
    failures = Failures(uri)
    failed = {}

    def tell(phase):
        failed[phase] = len(failures.heard)
        failures.heard.clear()

    def broken():
        tell("before")
        # What is still on its way can't be lost.
        wait_until(lambda: phases["before"].url("") in store.origins())
        if breaks:
            breaks(store)
        return [phases["broken"].url("/1"), phases["broken"].url("/private")]

    def known():
        tell("broken")
        # Of old, and still obeyed.
        return [phases["before"].url("/private/2"), phases["before"].url("/known")]

    def after():
        if mends:
            mends(store)
            passes(60)
        failures.heard.clear()
        return [phases["after"].url("/1"), phases["after"].url("/private")]

    # A memory of one origin: whatever is asked again comes from the store.
    memory = {"REP_MEMORY_MAX_BYTES": 1 if lost == () and not breaks else 2**20}
    settings = {"REP_STORE": uri, "LOG_LEVEL": "DEBUG", **memory}
    result = await crawl(
        phases["before"].url("/1"),
        settings=settings,
        opened=failures.listen,
        phases=[broken, known, after, lambda: tell("after") or []],
    )
    on_wire = [target for site in phases.values() for target in site.targets]
    assert sorted(on_wire) == ["/1", "/1", "/1", "/known"]
    assert set(result.dropped.values()) == {"rule"}
    assert len(result.dropped) == 3
    assert [len(site.robots_requests) for site in phases.values()] == [1, 1, 1]
    assert failed["before"] == 0
    assert max(failed.values()) <= BOUND
    warnings = result.messages(30)
    assert len(warnings) <= 2
    assert warnings or fault in SILENT
    assert "EVAL" not in "".join(warnings)
    if lost is not None:
        held = store.origins()
        gone = tuple(name for name, site in phases.items() if site.url("/")[:-1] not in held)
        assert gone == lost


async def test_a_store_that_fails_while_a_site_is_down_keeps_the_last_good_copy(
    web, tmp_path, request, clock
):
    store = SQLite(tmp_path)
    request.addfinalizer(store.close)
    site = web.site(robots(RULES), answer(503))
    settings = {"REP_STORE": store.uri, "REP_UNREACHABLE_STALE_AFTER": 0}
    url = site.url("/private")
    assert (await crawl(url, settings=settings)).dropped == {url: "rule"}
    clock.advance(DAY)
    store.move()
    await crawl(url, settings=settings, phases=[lambda: store.move_back() or []])
    assert len(site.robots_requests) == 2
    clock.advance(DAY)
    assert (await crawl(url, settings=settings)).dropped == {url: "rule"}
    assert len(site.robots_requests) == 3


async def test_a_store_that_is_not_there_from_the_beginning_is_memory(web, tmp_path, passes):
    (tmp_path / "file").write_text("")
    uris = [
        "redis://127.0.0.1:1/0?timeout=9",
        f"sqlite:///{tmp_path}/file/robots.sqlite",
        "sqlite:////proc/robots.sqlite",
    ]
    for uri in uris:
        sites = [web.site(robots(RULES)) for _ in range(5)]
        pages = [site.url(path) for path in ("/1", "/private", "/2") for site in sites]
        failures = Failures(uri)
        result = await crawl(*pages, settings={"REP_STORE": uri}, opened=failures.listen)
        # They ask side by side; pauses are read; and when it closes it is tried once more.
        assert 0 < len(failures.heard) <= BOUND * len(sites) + 2
        assert [sorted(site.targets) for site in sites] == [["/1", "/2"]] * 5
        assert [len(site.robots_requests) for site in sites] == [1] * 5
        warnings = result.messages(30)
        assert "can't be used" in warnings[0]
        # And one when it closes, of what could not be kept.
        assert len(warnings) == 2


async def test_a_file_that_is_locked_can_not_be_used_although_it_is_read(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "robots.sqlite"
    kept = WriteBehind(sqlite(path, timeout=0.3), name=path, timeout=PATIENCE)
    await deferred_from_coro(kept.claim("a", "me", 60))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        claimed = deferred_from_coro(kept.claim("b", "me", 60))
        await deferred_from_coro(until(lambda: kept._is_writing and not kept._changes))
        await deferred_from_coro(kept.pauses_left())
        assert (await claimed) is None
    (line,) = caplog.messages
    assert line.startswith(f"{path} can't be used, records of robots.txt are kept in memory: ")
    await deferred_from_coro(kept.close())


async def test_what_a_crawl_stores_while_another_one_closes_the_store_is_kept(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(write_behind, "_CLOSING", 0.0)
    path = tmp_path / "robots.sqlite"
    kept = WriteBehind(sqlite(path), name=path, timeout=PATIENCE)
    await deferred_from_coro(kept.claim("a", "me", 60))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        kept.put(Release("a", "me"))
        await deferred_from_coro(until(lambda: not kept._changes))
        closed = deferred_from_coro(kept.close())
        kept.users.add(lambda: None)
        kept.put(put(available()))
        await closed
    await deferred_from_coro(until(lambda: list(sqlite(path).keys()) == [ORIGIN]))
    kept.users.clear()
    await deferred_from_coro(kept.close())


@pytest.mark.parametrize(("fault", "seconds"), [("locked", 2), ("emptied", 5)])
async def test_a_worker_says_that_it_is_there_until_the_store_knows_it(tmp_path, fault, seconds):
    path, now = tmp_path / "robots.sqlite", [1_000.0]
    sqlite(path).write([])
    kept = WriteBehind(sqlite(path, timeout=0.0), clock=Clock(monotonic=lambda: now[0]))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        if fault == "locked":
            other.execute("BEGIN IMMEDIATE")
        await deferred_from_coro(kept.pauses_left())
        await deferred_from_coro(until(lambda: not kept._is_writing))
        if fault == "emptied":
            other.execute("DELETE FROM leases")
    now[0] += seconds
    await deferred_from_coro(kept.pauses_left())
    await deferred_from_coro(until(lambda: sqlite(path).read([]).workers == 1))
    await deferred_from_coro(kept.close())


async def test_no_password_is_logged(web, tmp_path):
    site = web.site(robots(RULES))
    needs_redis()
    server = RedisServer(tmp_path, "--requirepass", "right-secret")
    uris = ["redis://somebody:wrong-secret@127.0.0.1:1/0"]
    uris.append(f"redis://somebody:wrong-secret@127.0.0.1:{server.port}/0")
    uris.append(f"redis://:right-secret@127.0.0.1:{server.port}/0")
    for uri in uris:
        result = await crawl(site.url("/1"), settings={"REP_STORE": uri})
        text = "\n".join(result.messages())
        assert "redis://***@127.0.0.1" in text
        assert "secret" not in text
        assert "somebody" not in text
        assert bool(result.messages(30)) == ("wrong" in uri)
    server.stop()


async def test_crawls_at_once_in_one_process_share_what_they_know(web, tmp_path):
    # No other crawl of this process has this limit, and so none shares the memory with these.
    memory = {"REP_MEMORY_MAX_BYTES": 12_345_678}
    for uri in ("memory://", f"sqlite:///{tmp_path}/robots.sqlite"):
        body = "User-agent: a\nDisallow: /a\n\nUser-agent: b\nDisallow: /b\n"
        site = web.site(held(robots(body)))
        crawlers = []

        async def meanwhile(crawler, crawlers=crawlers, site=site):
            crawlers.append(crawler)
            await until(lambda: len(crawlers) == 2 and site.robots_requests)
            await until(lambda: all(stat(each, "scheduler/enqueued") >= 2 for each in crawlers))
            site.release()

        pages = [site.url("/a"), site.url("/b")]
        orders = [{**memory, "REP_STORE": uri, "ROBOTSTXT_USER_AGENT": name} for name in "ab"]
        crawls = [crawl(*pages, settings=order, meanwhile=meanwhile) for order in orders]
        results = await gatherResults([Deferred.fromCoroutine(each) for each in crawls])
        assert [list(result.dropped) for result in results] == [[page] for page in pages]
        assert len(site.robots_requests) == 1
        # The level went with its last user: memory has nothing left.
        await crawl(site.url("/c"), settings={**memory, "REP_STORE": uri})
        assert len(site.robots_requests) == (2 if uri == "memory://" else 1)
