"""Workers that reserve their turns in one store, in made-up time, with what can go wrong.

A seed decides all of it: how many workers want how much of which origin, who dies, who can't reach
the store, whose event loop is busy, and where the store's clock goes. The store is the statement
that the SQLite store runs. What must hold: requests to an origin are as far apart as it asks, each
worker's own always; a death leaves one turn unused; nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter, defaultdict
from contextlib import suppress
from random import Random
from types import SimpleNamespace

from scrapy.http import Request
from scrapy.settings import Settings

from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.scheduler.turns import Turns
from scrapy_rep.stores import sqlite
from scrapy_rep.stores.base import StoreError, Turn
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.sqlite_file import STEPS, migrate
from scrapy_rep.utils.clock import Clock
from tests.simulation.loop import DeadlockError, SimulatedLoop
from tests.simulation.world import ViolationError

LATE = 0.03
OWN_PART = 0.98
"""What Scrapy's download slot keeps of the delay."""
ROUND_TRIP = 0.02
TINY = 0.001
STOP = 60
"""Seconds for which a process may stand still, as a machine that sleeps."""


class Store:
    """The statement of the SQLite store, on a database in memory, by a clock that may jump."""

    def __init__(self, world):
        self.world = world
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.connection, 0, len(STEPS))

    async def reserve(self, origin, seconds, unused=None):
        step = round(seconds * 1e6)
        now = round((self.world.loop.now + self.world.store_ahead) * 1e6)
        values = {"origin": origin, "now": now, "step": step, "unused": unused}
        self.connection.execute(sqlite._RESERVE, values)
        ((mark,),) = self.connection.execute(sqlite._RESERVED, (origin,))
        return Turn((mark - step - now) / 1e6, mark)


class Reached:
    """The store as one worker reaches it."""

    def __init__(self, world, worker):
        self.world = world
        self.worker = worker

    async def reserve(self, origin, seconds, unused=None):
        world, random = self.world, self.world.random
        asked = world.loop.now
        await asyncio.sleep(random.uniform(0, ROUND_TRIP / 2))
        if world.loop.now < self.worker.cut_off_until:
            world.faults["store not reached"] += 1
            if random.random() < 0.1:
                await asyncio.sleep(1e5)
            raise StoreError("made up")
        if not self.worker.alive:
            await world.loop.create_future()
        turn = await world.store.reserve(origin, seconds, unused)
        decided = world.loop.now
        await asyncio.sleep(random.uniform(0, ROUND_TRIP / 2))
        if random.random() < world.lost:
            world.faults["store answer lost"] += 1
            world.trouble(60)  # as long the guard asks no more
            raise StoreError("made up")
        return turn._replace(seconds=turn.seconds + decided - asked)


class Worker:
    """One process: its turns, and the slots of its downloader."""

    def __init__(self, world):
        self.world = world
        self.alive = True
        self.cut_off_until = 0.0
        self.tasks = set()
        self.last = defaultdict(lambda: -1e9)
        self.counts = Counter()
        loop = world.loop
        sizes = {"max_bytes": 10, "max_size": 10}
        store = GuardedStore(
            Reached(world, self),
            MemoryStore(**sizes, clock=loop.time),
            name="it",
            timeout=2.0,
            clock=loop.time,
        )
        crawler = SimpleNamespace(
            engine=None,
            stats=SimpleNamespace(inc_value=lambda name, by: self.counts.update({name: by})),
            signals=SimpleNamespace(connect=lambda *_: None),
            settings=Settings(),
        )
        free = SimpleNamespace(
            seconds_until_free=lambda _: 0.0,
            may_have_delay=lambda _: True,
            apply_delay=lambda _, seconds: seconds,
        )
        decider = SimpleNamespace(known_decision=lambda _: None)
        clock = Clock(loop.time, loop.time, self.call_later)
        self.turns = Turns(crawler, store, None, free, clock)
        gate = SimpleNamespace(listen_for_hold_change=self.turns.listen_for_hold_change)
        self.waits = WaitingRequests(crawler, decider, gate, self.turns, clock)
        self.request = Request("http://site.example/", meta={"download_slot": "site.example"})

    def call_later(self, seconds, call, *arguments):
        if self.world.random.random() < self.world.busy:
            self.world.faults["event loop busy"] += 1
            seconds += self.world.random.uniform(0, 0.2)
        if self.world.random.random() < self.world.stops:
            self.world.faults["worker stands still"] += 1
            seconds += self.world.random.uniform(0, STOP)
        return self.world.loop.call_later(seconds, call, *arguments)

    async def send(self, origin):
        """Send a request as a crawl does, and check what comes of it."""
        world = self.world
        delay = world.delays[origin]
        decision = SimpleNamespace(
            origin=origin,
            verdict=SimpleNamespace(allowed=True),
            entry=SimpleNamespace(delay=lambda _: delay),
            tokens=(),
        )
        await self.waits.wait_for_turn(self.request, decision, direct=True)
        left = self.last[origin] + OWN_PART * delay - world.loop.now
        if left > 0:
            self.last[origin] += OWN_PART * delay
            await asyncio.sleep(left)
        else:
            self.last[origin] = world.loop.now
        if self.alive:
            world.sent(self, origin)


class World:
    """Everything that a seed decides."""

    def __init__(self, seed, *, workers=None, origins=None, requests=None):
        self.random = random = Random(seed)
        self.loop = SimulatedLoop(random)
        self.faults = Counter()
        self.problems = []
        self.store_ahead = 0.0
        self.store = Store(self)
        self.lost = random.choice((0.0, 0.0, 0.05))
        self.busy = random.choice((0.0, 0.0, 0.2))
        self.stops = random.choice((0.0, 0.0, 0.02))
        self.cuts = random.choice((0.0, 0.0, 0.02))
        self.deaths = random.choice((0.0, 0.01))
        self.jumps = random.choice((0.0, 0.0, 0.02))
        self.delays = {
            Origin("https", f"site-{n}.example", 443): random.choice((0.3, 1.0, 2.0, 30.0))
            for n in range(origins or random.randint(1, 3))
        }
        self.origins = list(self.delays)
        self.requests = requests or random.randint(20, 120)
        self.pace = 0.3 if requests is None else 0.005
        self.most_workers = workers or random.randint(1, 6)
        self.wire = {}
        """Of each origin the last request: when, and of whom."""
        self.smallest = 1e9
        """The smallest gap that was promised, as a part of the delay."""
        self.troubled_until = 0.0
        self.sends = 0

    def trouble(self, seconds=0.0):
        """Promise nothing for a while: as long as turns may be ahead that were given meanwhile."""
        longest = self.most_workers * max(self.delays.values())
        until = self.loop.now + seconds + 3 * longest
        self.troubled_until = max(self.troubled_until, until)

    def sent(self, worker, origin):
        now, delay = self.loop.now, self.delays[origin]
        before, who = self.wire.get(origin, (-1e9, None))
        self.wire[origin] = now, worker
        self.sends += 1
        gap = now - before
        if gap < OWN_PART * delay - TINY and who is worker:
            self.problems.append(ViolationError(f"{gap:.3f} s of {delay:g} s by one worker"))
        if now < self.troubled_until:
            return
        self.smallest = min(self.smallest, gap / delay)
        if gap < min(delay - LATE, OWN_PART * delay) - ROUND_TRIP - TINY:
            self.problems.append(ViolationError(f"{gap:.3f} s of {delay:g} s, at {now:.3f}"))

    async def run(self):
        random = self.random
        workers = [Worker(self) for _ in range(self.most_workers)]
        tasks = []
        while len(tasks) < self.requests:
            await asyncio.sleep(random.expovariate(1 / self.pace))
            chance = random.random()
            worker = random.choice(workers)
            if chance < self.deaths:
                self.faults["worker dies"] += 1
                worker.alive = False
                for task in list(worker.tasks):
                    task.cancel()
                workers.remove(worker)
                workers.append(Worker(self))
            elif chance < self.deaths + self.cuts:
                self.faults["worker cut off"] += 1
                seconds = random.uniform(1, 60)
                worker.cut_off_until = self.loop.now + seconds
                self.trouble(seconds + 30)  # and as long the guard asks no more
            elif chance < self.deaths + self.cuts + self.jumps:
                self.faults["store's clock jumps"] += 1
                self.store_ahead += random.choice((-1, 1)) * random.choice((1, 100, 1e5))
                # Turns that were given twice are made up for by what a slot keeps less.
                self.trouble(max(self.delays.values()) / (1 - OWN_PART))
            else:
                task = self.loop.create_task(worker.send(random.choice(self.origins)))
                worker.tasks.add(task)
                task.add_done_callback(worker.tasks.discard)
                task.add_done_callback(self.ended)
                tasks.append(task)
        await self.end(tasks)

    async def end(self, tasks):
        """Wait for all, no longer than it takes at the delay, dead workers' turns included."""
        of_origin = -(-len(tasks) // len(self.origins)) * 4 + 2 * self.most_workers
        lost = self.faults["worker dies"] + self.faults["store answer lost"]
        busy = 1 + 5 * (self.busy > 0)  # turns that are missed, or longer
        longest = max(self.delays.values()) * (of_origin + lost) * busy + 200
        longest += STOP * len(tasks) * (self.stops > 0)
        await asyncio.wait(tasks, timeout=longest)
        late = sum(not task.done() for task in tasks)
        if late:
            raise ViolationError(f"{late} requests that never leave")
        if self.problems:
            raise self.problems[0]

    def ended(self, task):
        if not task.cancelled() and task.exception() is not None:
            self.problems.append(task.exception())


def simulate(seed, **sizes):
    """Run a seed; return its world. Raises ViolationError, which names the seed."""
    world = World(seed, **sizes)
    loop = world.loop
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(world.run())
    except ViolationError as violation:
        raise ViolationError(f"seed {seed}: {violation}") from violation
    except DeadlockError:
        raise ViolationError(f"seed {seed}: nothing goes on any more") from None
    finally:
        for task in (tasks := asyncio.all_tasks(loop)):
            task._log_destroy_pending = False
            task.cancel()
        with suppress(DeadlockError):
            if tasks:
                loop.run_until_complete(asyncio.wait(tasks, timeout=1e6))
        asyncio.set_event_loop(None)
        world.store.connection.close()
    return world
