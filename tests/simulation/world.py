"""A fleet of caches on one store, in made-up time, with everything going wrong that can.

A seed decides all of it: what is asked and cancelled, how sites answer, which step comes next,
which worker dies at which await, how the store fails and whose clock jumps. What must hold is
checked at every fetch and every verdict.
"""

import asyncio
from collections import Counter

from twisted.internet.defer import CancelledError

from scrapy_rep import CrawlClosingError
from scrapy_rep.cache.entry import _MAX_UNUSED
from scrapy_rep.cache.lookup_limit import LookupLimit
from scrapy_rep.protocol.fetch_policy import Policy
from scrapy_rep.protocol.header_times import freshness_lifetime
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.stores.base import StoreError
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.bounded import BoundedCache
from scrapy_rep.utils.clock import Clock
from tests.made_up_network import make_cache
from tests.simulation.loop import SimulatedWorld, ViolationError

POLICY = Policy(
    cache_ttl=900.0,
    cache_ttl_min=60.0,
    cache_ttl_max=1_800.0,
    unreachable_stale_after=2_400.0,
    unreachable_allow_after=3_000.0,
    retry_delay=10.0,
    retry_delay_max=300.0,
)
TIMEOUT = 10.0
LEASE = TIMEOUT + 5.0
STORE_TIMEOUT = 2.0
DEADLINE = 400.0
"""Seconds in which every waiter ends: three leases, and the turns of others before its own."""

BODIES = (
    b"",
    b"User-agent: *\nDisallow: /private\n",
    b"User-agent: *\nDisallow: /\n",
    b"User-agent: a\nDisallow: /a\n\nUser-agent: *\nDisallow: /private\nAllow: /private/open\n",
    b"<html>not found</html>",
    b"\xff\xfe\0Disallow: /\r\rUser-agent *\n" * 3,
)
TARGETS = ("/", "/a", "/private", "/private/open")
TOKENS = (("a",), ("b",), ("a", "b"))
SIZES = {"max_bytes": 2**24, "max_size": 512_000}


class Answer:
    """What a site answered, and to whom."""

    def __init__(self, worker, outcome):
        self.worker = worker
        self.outcome = outcome
        self.at = outcome.evidence.at
        self.robots = None
        self.of_origin = not isinstance(outcome, Unreachable) or outcome.of_origin
        if isinstance(outcome, Available):
            self.robots = RobotsTxt.parse(outcome.body)

    @property
    def life(self):
        evidence = self.outcome.evidence
        return freshness_lifetime(
            evidence.cache_control,
            evidence.age,
            ttl=POLICY.cache_ttl,
            ttl_min=POLICY.cache_ttl_min,
            ttl_max=POLICY.cache_ttl_max,
        )

    def allows(self, target, tokens):
        if isinstance(self.outcome, Unavailable):
            return True
        return (
            self.robots is not None and self.robots.rules_for(*tokens).verdict_for(target).allowed
        )


class DyingStore:
    """The fleet's store as one worker reaches it: late, failing, hanging, or not at all."""

    def __init__(self, world, worker, inner):
        self.world = world
        self.worker = worker
        self.inner = inner

    async def call(self, name, *args, **only):
        world, random = self.world, self.world.random
        if not self.worker.alive:
            await world.never()
        await asyncio.sleep(random.choice((0.0, 0.001, 0.01)))
        if random.random() < world.store_faults:
            fault = random.choice(("store error", "store hangs", "store lags", "store bug"))
            world.faults[fault] += 1
            if fault == "store error":
                raise StoreError("made up")
            if fault == "store bug":
                raise RuntimeError("made up")
            await asyncio.sleep(1e5 if fault == "store hangs" else random.uniform(0.1, 5.0))
        if not self.worker.alive:
            await world.never()
        result = await getattr(self.inner, name)(*args, **only)
        # Done, and nobody is told.
        if random.random() < world.store_faults / 4:
            world.faults["store answer lost"] += 1
            raise StoreError("made up")
        return result

    async def get(self, origin):
        held = await self.call("get", origin)
        if self.world.random.random() < self.world.store_faults / 4:
            self.world.faults["store forgets"] += 1
            await self.inner.discard(origin)
            return held._replace(record=None)
        return held

    async def claim(self, origin, holder, seconds, **only):
        return await self.call("claim", origin, holder, seconds, **only)

    async def put(self, record, holder=None):
        if not record.of_origin:
            self.world.violated(f"a record of {record.origin} that is not its own was stored")
        await self.call("put", record, holder)

    async def release(self, origin, holder):
        await self.call("release", origin, holder)

    async def close(self):
        pass


class Worker:
    """One process: a cache, its clock, and what it was asked."""

    def __init__(self, world, number):
        self.world = world
        self.number = number
        self.alive = True
        self.offset = world.random.choice((0.0, 0.0, world.skew))
        self.began = self.clock()
        self.walls = {}
        """Spans of this worker's clock, one for every request under way."""
        self.flying = Counter()
        self.started = {}
        self.tasks = {}
        store = DyingStore(world, self, world.store)
        spare = MemoryStore(**SIZES, clock=world.loop.time)
        clock = Clock(self.clock, world.loop.time)
        self.cache = make_cache(
            GuardedStore(store, spare, name="it", timeout=STORE_TIMEOUT, clock=world.loop.time),
            clock,
            policy=POLICY,
            fetch=self.fetch,
            parsed=self.parsed,
            jitter=world.random.random,
            limit=LookupLimit(world.random.choice((1, 2, 16)), clock),
            entries=BoundedCache(max_entries=world.random.choice((1, 2, 100))),
            name=f"worker-{number}",
            lease=LEASE,
        )

    def clock(self):
        return self.world.loop.now + 1e9 + self.offset

    async def parsed(self, robots, page):
        await asyncio.sleep(0)

    async def fetch(self, origin, page):
        world, random = self.world, self.world.random
        if not self.alive:
            await world.never()
        self.flying[origin] += 1
        if self.flying[origin] > 1:
            world.violated(f"two fetches of {origin} by one worker")
        self.started[origin] = world.loop.now
        world.ends += 1
        world.check_retry(self, origin)
        world.check_fetch(self, origin)
        try:
            await asyncio.sleep(random.choice((0.01, 0.3, 3.0, TIMEOUT)))
            if not self.alive:
                await world.never()
            if random.random() < world.fetch_bugs:
                world.faults["fetch raises"] += 1
                raise RuntimeError("made up")
            outcome = world.answer(origin, self)
        finally:
            self.flying[origin] -= 1
        world.answers[origin].append(Answer(self, outcome))
        return outcome

    async def request(self, origin, target, tokens):
        """Ask as the middleware does, and check what comes of it."""
        start = self.world.loop.now
        wall = [self.clock(), self.clock()]
        self.walls[id(wall)] = wall
        try:
            entry = self.cache.known_entry(origin)
            verdict = None if entry is None else entry.verdict(target, tokens)
            if verdict is None:
                entry = await self.cache.entry(origin, tokens, None)
                verdict = entry.verdict(target, tokens)
            if verdict is None:
                raise ViolationError("no verdict")
            is_first, entry.unused = entry.unused, False
        except CrawlClosingError:
            if not self.cache.closing:
                raise ViolationError("a crawl that isn't closing said so") from None
            return
        except (CancelledError, asyncio.CancelledError):
            return
        finally:
            del self.walls[id(wall)]
            if self.alive and self.world.loop.now - start > DEADLINE:
                raise ViolationError(f"waited {self.world.loop.now - start:.0f} s")
        self.tick(wall)
        if self.alive and verdict.allowed:
            self.world.check_allowed(self, origin, target, tokens, wall, is_first=is_first)

    def tick(self, *walls):
        for wall in walls or self.walls.values():
            wall[:] = min(wall[0], self.clock()), max(wall[1], self.clock())

    def jump(self, seconds):
        self.tick()
        self.offset += seconds
        self.tick()


class World(SimulatedWorld):
    """The fleet, and its sites."""

    def __init__(self, seed, *, workers=None, origins=None, requests=None):
        """Take a seed, and sizes in place of those that it would decide."""
        super().__init__(seed)
        random = self.random
        # Many fleets have a store without a fault, or clocks that agree: there more is promised.
        self.store_faults = random.choice((0.0, 0.0, 0.0, 0.02, 0.1, 0.4))
        self.clocks_differ = random.random() < 0.3
        self.skew = random.choice((0.0, 30.0, -30.0, 5_000.0)) if self.clocks_differ else 0.0
        self.clock_jumps = 0.03 if self.clocks_differ else 0.0
        self.faulty = self.clocks_differ or self.store_faults > 0
        self.fetch_bugs = random.choice((0.0, 0.05))
        self.fails = random.choice((0.1, 0.5, 0.95))
        # In some worlds alone, so that seeds in which something was found stay what they were.
        self.route_fails = 0.3 if seed % 5 == 4 else 0.0
        self.loop.lag = random.choice((0.0, 0.02))
        self.answers = {
            Origin("https", f"site-{n}.example", 443): []
            for n in range(origins or random.randint(1, 3))
        }
        self.origins = list(self.answers)
        self.first_workers = workers
        self.most_requests = requests
        self.state = {}
        self.numbers = 0
        self.workers = []
        self.all_workers = []

    async def never(self):
        await self.loop.create_future()

    def answer(self, origin, worker):
        """What the site says now; what it says changes now and then."""
        random = self.random
        if self.route_fails and random.random() < self.route_fails:
            self.faults["route fails"] += 1
            error = Evidence(worker.clock(), url=origin.robotstxt_url, error="made up")
            return Unreachable(error, of_origin=False)
        if origin not in self.state or random.random() < 0.3:
            self.state[origin] = random.random() < self.fails, random.choice((*BODIES, None))
        fails, body = self.state[origin]
        seen = {"url": origin.robotstxt_url}
        if fails:
            self.faults["fetch fails"] += 1
            status = random.choice((503, 500, None))
            later = random.choice((None, "5", "100000", "soon"))
            error = "made up" if status is None else None
            return Unreachable(
                Evidence(worker.clock(), status=status, retry_after=later, error=error, **seen)
            )
        if body is None:
            return Unavailable(Evidence(worker.clock(), status=404, **seen))
        if random.random() < 0.1:
            self.faults["fetch lies"] += 1
            seen["age"] = random.choice(("999999999", "-5", "x"))
        life = random.choice((None, "max-age=0", "max-age=300", "max-age=999999", "no-cache, x=,"))
        return Available(body, Evidence(worker.clock(), status=200, cache_control=life, **seen))

    def check_fetch(self, worker, origin):
        if self.faulty:
            return
        for other in self.workers:
            if other is worker or not other.alive or not other.flying[origin]:
                continue
            if self.loop.now - other.started[origin] < TIMEOUT:
                self.violated(f"two fetches of {origin} in the fleet")
        held = self.store._record(str(origin))
        if held is not None and not POLICY.is_due(held, worker.clock(), worker.began):
            self.violated(f"fetch of {origin}, which the store knows")

    def check_retry(self, worker, origin):
        """What a worker could not reach it asks again after a while only, unless others did."""
        last = self.answers[origin][-1:]
        if self.clocks_differ or not last or last[0].worker is not worker:
            return
        if last[0].of_origin or worker.clock() - last[0].at >= POLICY.retry_delay:
            return
        self.violated(f"{origin} was asked again at once")

    def check_allowed(self, worker, origin, target, tokens, wall, *, is_first):
        """There has to be an answer that allows it, alive, and not older than the worker's own."""
        answers = self.answers[origin]
        # Of two that came at the same moment neither is the older; nor where clocks differ. Where
        # the store gives no leases two are fetched at a time, and either may be the one that stays.
        # What did not come to the origin is no answer of it.
        answers = [a for a in answers if a.of_origin]
        own = max((a.at for a in answers if a.worker is worker), default=0.0)
        own -= TIMEOUT if self.store_faults else 0.0
        for answer in answers:
            if answer.at < own and not self.clocks_differ:
                continue
            # The first page after a lookup may be sent by an answer that has expired meanwhile.
            life = max(answer.life, _MAX_UNUSED) if is_first else answer.life
            lives = answer.at <= wall[1] and wall[0] < answer.at + life
            if lives and answer.allows(target, tokens):
                return
        if not self.opened_long_ago(answers, target, tokens, wall[1]):
            raise ViolationError(f"{target} of {origin} was let out to {tokens}")

    def opened_long_ago(self, answers, target, tokens, now):
        """Whether the origin has been unreachable for so long that its last copy holds, or all."""
        if self.faulty:
            # What was forgotten, or stored late, may have begun at any failure.
            fails = [isinstance(answer.outcome, Unreachable) for answer in answers]
            if True not in fails:
                return False
            # Where clocks differ all that any of them went forward may have been counted.
            times = [*(answer.at for answer in answers[fails.index(True) :]), now]
            counted = sum(max(0.0, times[i + 1] - times[i]) for i in range(len(times) - 1))
            return counted >= min(POLICY.unreachable_stale_after, POLICY.unreachable_allow_after)
        since, copy = None, None
        for answer in answers:
            if not isinstance(answer.outcome, Unreachable):
                since, copy = None, answer if answer.robots is not None else None
            elif since is None:
                since = answer.at
        if since is None or now < since + (
            POLICY.unreachable_allow_after if copy is None else POLICY.unreachable_stale_after
        ):
            return False
        return copy is None or copy.allows(target, tokens)

    async def run(self):
        random = self.random
        max_bytes = SIZES["max_bytes"] * max(1, len(self.origins) // 1_000)
        sizes = {**SIZES, "max_bytes": max_bytes}
        self.store = MemoryStore(**sizes, clock=self.loop.time)
        for _ in range(self.first_workers or random.randint(1, 4)):
            self.add_worker()
        if self.most_requests is not None:
            await self.ask_much()
            return
        end = self.loop.now + random.choice((600.0, 2_000.0, 8_000.0))
        tasks = []
        while self.loop.now < end:
            if random.random() < 0.2:
                await asyncio.sleep(random.expovariate(1 / 300))
            else:
                await asyncio.sleep(random.choice((0.0, 0.0, 0.05, 1.0)))
            self.act(tasks)
        await self.end(tasks)

    async def ask_much(self):
        """Ask so many requests at a pace that so many workers have."""
        tasks = []
        while self.requests < self.most_requests:
            await asyncio.sleep(self.random.expovariate(200))
            self.act(tasks)
            if len(tasks) > 10_000:
                tasks = [task for task in tasks if not task.done()]
        await self.end(tasks)

    async def end(self, tasks):
        await self.wait_for(tasks, 2 * DEADLINE)
        for worker in self.workers:
            worker.cache.close()
            await worker.cache.finish()

    def act(self, tasks):
        """Let the next thing happen."""
        random = self.random
        worker = random.choice(self.workers)
        chance = random.random()
        if chance < 0.01:
            self.kill(worker)
            self.workers.remove(worker)
            self.add_worker()
        elif chance < 0.02:
            self.faults["worker closes"] += 1
            worker.cache.close()
            self.workers.remove(worker)
            self.add_worker()
        elif chance < 0.02 + self.clock_jumps:
            self.faults["clock jumps"] += 1
            worker.jump(random.choice((-1, 1)) * random.choice((1.0, 60.0, 4_000.0, 1e6)))
        elif chance < 0.12 and worker.tasks:
            self.cancel(worker)
        else:
            origin = random.choice(self.origins)
            for _ in range(random.choice((1, 1, 3))):
                asked = worker.request(origin, random.choice(TARGETS), random.choice(TOKENS))
                tasks.append(self.ask(worker, asked))

    def add_worker(self):
        self.numbers += 1
        self.workers.append(Worker(self, self.numbers))
        self.all_workers.append(self.workers[-1])

    def clean_up(self):
        for worker in self.all_workers:
            worker.cache._lookups.closing = True
        super().clean_up()


def simulate(seed, **sizes):
    return World(seed, **sizes).simulate()
