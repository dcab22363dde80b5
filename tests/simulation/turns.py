"""Workers that keep the delays and pauses of hosts, in made-up time, with what can go wrong.

A seed decides all of it: how many workers want how much of which host, when a host refuses, who
dies, who can't reach the store, whose event loop is busy, and where the clocks go. Each worker has
the admission, the wire and the write-behind of a crawl; they share one store in memory.

What must hold: requests to a host with a delay are that far apart, each worker's own always; in a
pause, no worker that knows of it sends anything; after it, one request is sent until that has a
response; each request ends.
"""

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress
from random import Random
from random import seed as seed_global
from types import SimpleNamespace

from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.signalmanager import SignalManager

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.ticket import TICKET_KEY, Ticket
from scrapy_rep.decision.decider import Decider
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.downloadermiddlewares.wire import GivenBackError, Wire
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.settings import Options
from scrapy_rep.stores.base import PAUSE, WORKER, Claim, StoreError, host_of_key
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.concurrency import Clock
from tests.made_up_network import make_lookups
from tests.simulation.loop import DeadlockError, SimulatedLoop, ViolationError

ROUND_TRIP = 0.02
READ_AGE_MAX = 1.0
"""Seconds for which a worker need not know of a pause that another one has begun."""
BUSY = 0.2
"""Seconds for which an event loop is busy at most."""
STOP = 60.0
"""Seconds for which a process may stand still, as a machine that sleeps."""
TINY = 0.001
STORE_TIMEOUT = 2.0
LONGEST_PAUSE = 40.0
TIMEOUT = 30.0
"""Seconds after which a request to a host that hangs ends."""
PROBE_LEASE = 60.0
MARGIN = 0.05
"""Seconds by which the pauses of two workers differ."""
EPOCH = 1e9
SETTINGS = {"REP_BACK_OFF_MAX": LONGEST_PAUSE}


class Shared:
    """The store of all workers, as one of them reaches it: late, failing, hanging, or not at all.

    It takes the place of both threads of the write-behind, and what these would call.
    """

    is_shared = True

    def __init__(self, worker, store):
        self.worker = worker
        self.store = store
        self.answers = []
        """What came of the changes of a call, or the pauses that it found, until they are told."""

    def peek(self, keys):
        return None

    def write(self, changes):
        leases = self.store.write(changes)
        self.answers += zip(changes, leases, strict=True)
        return leases

    def pauses_left(self):
        found = self.store.pauses_left()
        self.answers.append((None, found))
        return found

    async def call(self, function):
        world, worker = self.worker.world, self.worker
        random = world.random
        await asyncio.sleep(random.uniform(0, ROUND_TRIP / 2))
        if world.loop.now < worker.cut_off_until:
            world.faults["store not reached"] += 1
            if random.random() < 0.1:
                await asyncio.sleep(1e5)
            raise StoreError("made up")
        if random.random() < world.lags:
            world.faults["store lags"] += 1
            world.trouble(STORE_TIMEOUT)
            await asyncio.sleep(random.uniform(0, STORE_TIMEOUT))
        await worker.is_alive()
        result = function()
        answers, self.answers = self.answers, []
        done_at = world.loop.now
        await asyncio.sleep(random.uniform(0, ROUND_TRIP / 2))
        if random.random() < world.lost:
            world.faults["store answer lost"] += 1
            world.trouble(60)  # as long the worker calls no more
            raise StoreError("made up")
        await worker.is_alive()
        for change, answer in answers:
            if change is None:
                self.tell_pauses(answer)
            elif isinstance(change, Claim):
                self.tell_lease(change, answer, done_at)
        seconds = worker.seconds_busy()  # the answer waits for the event loop
        if seconds > BUSY:
            world.trouble(seconds)  # the answer is old, or the worker goes on without it
        await asyncio.sleep(seconds)
        return result

    def tell_lease(self, claim, lease, done_at):
        world, worker, host = self.worker.world, self.worker, host_of_key(claim.key)
        if host is None:
            assert claim.holder.startswith(WORKER), "that the worker is there"
        elif claim.holder == PAUSE:
            world.pause_stored(worker, host, lease)
        elif lease.holder == claim.holder:
            worker.claimed_at[host] = done_at
        elif lease.holder == PAUSE:
            world.told(worker, host, lease.left)

    def tell_pauses(self, found):
        for key, left in found.items():
            if (host := host_of_key(key)) is not None:
                self.worker.world.told(self.worker, host, left)


class Worker:
    """One process: the admission, the wire, and what it is downloading."""

    def __init__(self, world):
        self.world = world
        self.alive = True
        self.cut_off_until = 0.0
        self.tasks = {}
        self.claimed_at = {}
        """When the store has given it the lease of each host last."""
        self.written_at = {}
        """When it has written a request to each host last."""
        self.paused_until = defaultdict(float)
        """When each pause ends that a response to a request of its own began."""
        self.probing = defaultdict(set)
        """The requests to each host that it has sent since its pause ended, and that have not ended."""
        loop = world.loop
        clock = Clock(self.time, loop.time, self.call_later)
        settings = Settings(SETTINGS)
        options = Options.from_settings(settings)
        self.crawler = crawler = SimpleNamespace(
            engine=None,
            spider=None,
            settings=settings,
            stats=SimpleNamespace(inc_value=lambda *_, **__: None),
        )
        crawler.signals = SignalManager(crawler)
        shared = Shared(self, world.store)
        store = WriteBehind(shared, name="it", timeout=STORE_TIMEOUT, clock=clock)
        store._reader = store._writer = shared
        policy = Policy(cache_ttl=1e9, cache_ttl_max=1e9)
        lookups = make_lookups(store, Clock(lambda: loop.now + EPOCH, loop.time), policy=policy)
        self.decider = Decider(crawler, lookups, Overrides((), self.time))
        leases = HostLeases(store, clock)
        self.admission = Admission(crawler, lookups, self.decider, options, clock, leases)
        for origin, delay in world.delays.items():
            body = f"User-agent: *\nCrawl-delay: {delay}\n".encode() if delay else b""
            evidence = Evidence(
                loop.now + EPOCH, url="", status=200, cache_control="max-age=999999999"
            )
            record = policy.record_after(None, origin, Available(body, evidence), jitter=0.0)
            lookups.cache.put_record(origin, record, self.decider.tokens.default())
        drops = SimpleNamespace(announcer=SimpleNamespace(send_verdict=lambda *_: None))
        more = {"dry_run": None, "stores_requests": True}
        self.gate = Gate(crawler, self.admission, drops, clock, self.decide_again, **more)
        self.wire = Wire(crawler, self.admission, self.gate, clock)
        self.reading = loop.create_task(self.reads_pauses())

    async def reads_pauses(self):
        """Read them twice a second, as a crawl does, as long as anything is to be sent."""
        while self.alive:
            await asyncio.sleep(0.5)
            if self.tasks:
                await self.admission.hosts.read_pauses()

    def time(self):
        return self.world.loop.now + self.world.ahead

    def call_later(self, seconds, call, *arguments):
        return self.world.loop.call_later(seconds + self.seconds_busy(), call, *arguments)

    def seconds_busy(self):
        world = self.world
        if world.random.random() < world.stops:
            world.faults["worker stands still"] += 1
            return world.random.uniform(0, STOP)
        if world.random.random() < world.busy:
            world.faults["event loop busy"] += 1
            return world.random.uniform(0, BUSY)
        return 0.0

    async def is_alive(self):
        if not self.alive:
            await self.world.loop.create_future()

    async def decide_again(self, request):
        # The rules are known for the tokens of the crawl; the request has none.
        ticket = Ticket(*request.meta[TICKET_KEY])
        decision, delay = self.decided(request)
        self.gate.let_pass(request, decision._replace(tokens=None), ticket, delay)

    def decided(self, request):
        decision = self.decider.known_decision(Request(request.url))
        return decision, self.admission.hosts.delays.kept(decision)

    async def send(self, origin):
        request = Request(f"{origin}/page")
        if len(self.tasks) == 1:  # it has read none while it had nothing to send
            await self.admission.hosts.read_pauses()
        while True:
            decision, _ = self.decided(request)
            try:
                await self.gate.ask(request, decision, Ticket())
            except IgnoreRequest:
                self.world.faults["dropped"] += 1
                return
            ends = self.time() + self.world.random.choice((1.0, 60.0, 1e9))
            ticket = Ticket(*request.meta[TICKET_KEY])._replace(end=ends, tokens=None)
            request.meta[TICKET_KEY] = tuple(ticket)
            await asyncio.sleep(self.world.random.choice((0.0, 0.0, 0.01, 0.5, 3.0)))
            with suppress(GivenBackError, DownloadTimeoutError):
                await self.wire.download(request, self.download)
                return

    async def download(self, request):
        """Download as a handler does: some time passes until the request is written."""
        world, random = self.world, self.world.random
        origin = origin_of(request.url)
        world.handed(self, origin, request)
        try:
            await asyncio.sleep(random.uniform(0, min(world.delays[origin] / 2 or 0.1, BUSY)))
            await self.is_alive()
            world.written(self, origin)
            response = world.response(origin, request)
            await asyncio.sleep(TIMEOUT if response is None else random.choice((0.01, 0.2, 5.0)))
            await self.is_alive()
            await asyncio.sleep(self.seconds_busy())
        except BaseException:
            world.ended(self, origin, request, None)
            raise
        world.ended(self, origin, request, response)
        if response is None:
            raise DownloadTimeoutError
        return response


class World:
    """The fleet, and its sites: everything that a seed decides."""

    def __init__(self, seed, *, workers=None, origins=None, requests=None):
        self.seed = seed
        self.random = random = Random(seed)
        seed_global(seed)  # for the jitter of pauses
        self.loop = SimulatedLoop(random)
        self.faults = Counter()
        self.problems = []
        self.requests = self.sent = 0
        self.ahead = EPOCH
        """By how much the system clock, which all workers have, is ahead of the monotonic one."""
        self.store = MemoryStore(max_bytes=2**24, clock=self.loop.time)
        self.lost = random.choice((0.0, 0.0, 0.05))
        self.lags = random.choice((0.0, 0.0, 0.05))
        self.busy = random.choice((0.0, 0.0, 0.2))
        self.stops = random.choice((0.0, 0.0, 0.02))
        self.cuts = random.choice((0.0, 0.0, 0.02))
        self.deaths = random.choice((0.0, 0.01))
        self.cancels = random.choice((0.0, 0.03))
        self.jumps = random.choice((0.0, 0.0, 0.02))
        self.refusals = random.choice((0.0, 0.02, 0.05))
        self.hangs = random.choice((0.0, 0.0, 0.1))
        self.delays = {
            origin_of(f"https://site-{n}.example/"): random.choice((0.0, 0.3, 1.0, 2.0, 30.0))
            for n in range(origins or random.randint(1, 3))
        }
        self.origins = list(self.delays)
        self.most_requests = requests or random.randint(20, 120)
        self.pace = 0.3 if requests is None else 0.005
        self.most_workers = workers or random.randint(1, 6)
        self.refuses_until = dict.fromkeys(self.origins, 0.0)
        self.wire = {}
        """Of each origin the last request: when it was written, and whether in time."""
        self.pauses = {}
        """Of each host with a pause in the store: its end, and the workers that know it."""
        self.troubled_until = 0.0

    # What goes wrong.

    def trouble(self, seconds=0.0):
        """Promise nothing among workers for a while: until leases have ended that were lost."""
        longest = max(2 * max(self.delays.values()), 4.0, PROBE_LEASE) + LONGEST_PAUSE
        self.troubled_until = max(self.troubled_until, self.loop.now + seconds + longest)

    @property
    def is_troubled(self):
        return self.loop.now < self.troubled_until

    # What sites do.

    def response(self, origin, request):
        """How the site answers ``request``; None if it hangs."""
        random, now = self.random, self.loop.now
        if random.random() < self.refusals:
            self.faults["site begins to refuse"] += 1
            self.refuses_until[origin] = now + random.choice((0.1, 3.0, 30.0))
        if random.random() < self.hangs:
            self.faults["site hangs"] += 1
            return None
        if now >= self.refuses_until[origin]:
            return Response(request.url)
        self.faults["site refuses"] += 1
        later = random.choice((None, b"1", b"5", b"20"))
        headers = {} if later is None else {"Retry-After": later}
        return Response(request.url, status=429, headers=headers)

    # What must hold.

    def violated(self, what):
        """Take note where raising would do no more than make a request fail."""
        self.problems.append(ViolationError(f"{what}, at {self.loop.now:.3f}"))

    def handed(self, worker, origin, request):
        """``worker`` hands a request to its download handler."""
        now, host = self.loop.now, origin.host
        if now < worker.paused_until[host] - TINY:
            self.violated(f"{host} was asked in a pause that this worker began")
        if worker.paused_until[host]:
            # A store that is late makes pauses longer, and then another request is the probe.
            if worker.probing[host] and not self.is_troubled:
                self.violated(f"{host} was asked twice by one worker after a pause")
            worker.probing[host].add(request)
        found = self.pauses.get(host)
        if found is None or self.is_troubled:
            return
        if now < found.until - MARGIN and now > found.known_at + READ_AGE_MAX + ROUND_TRIP + BUSY:
            self.violated(f"{host} was asked in a pause that the store has")
        if now >= found.until and worker in found.told:
            asks = [sent_at for sent_at in found.probes.values() if sent_at > now - PROBE_LEASE]
            if asks:
                self.violated(f"{host} was asked twice after a pause")
            found.probes[request] = now

    def written(self, worker, origin):
        """A request is on the network."""
        now, delay = self.loop.now, self.delays[origin]
        self.sent += 1
        gap = now - worker.written_at.get(origin, -1e9)
        if gap < delay - TINY:
            self.violated(f"{gap:.3f} s of {delay:g} s by one worker")
        worker.written_at[origin] = now
        before, in_time = self.wire.get(origin, (-1e9, True))
        self.wire[origin] = now, now - worker.claimed_at.get(origin.host, -1e9) <= delay
        if now - before < delay - TINY and in_time and not self.is_troubled:
            self.violated(f"{now - before:.3f} s of {delay:g} s")

    def ended(self, worker, origin, request, response):
        """``worker`` has a response, or None."""
        host = origin.host
        is_probe = request in worker.probing[host]
        worker.probing[host].discard(request)
        found = self.pauses.get(host)
        if found is not None:
            is_probe |= found.probes.pop(request, None) is not None
        if response is None:
            return
        if response.status == 429:
            asked = float(response.headers.get("Retry-After", b"0"))
            is_first = host not in worker.admission.hosts.paused
            if not asked and (is_first or (is_probe and not self.is_troubled)):
                asked = 1.0
            until = self.loop.now + asked
            if asked and until > worker.paused_until[host]:
                worker.paused_until[host] = until
                worker.probing[host].clear()  # they tell nothing about this pause
        elif is_probe:
            worker.paused_until.pop(host)
            worker.probing.pop(host)
            self.pauses.pop(host, None)

    def pause_stored(self, worker, host, lease):
        """The store has answered ``worker`` that it has a pause; or that another has the lease."""
        if lease.holder == PAUSE:
            self.told(worker, host, lease.left)
        elif lease.holder == worker.admission.hosts.leases._name and not self.is_troubled:
            self.violated(f"the pause of {host} is not stored, as its worker has the lease")

    def told(self, worker, host, left):
        """``worker`` knows from the store that ``host`` has a pause."""
        if left <= MARGIN or self.is_troubled:
            return
        until = self.loop.now + left - ROUND_TRIP
        found = self.pauses.get(host)
        if found is None or found.until + MARGIN < until:
            told = set() if found is None else found.told
            found = SimpleNamespace(until=until, known_at=self.loop.now, told=told, probes={})
            self.pauses[host] = found
        found.told.add(worker)

    # What happens.

    def send(self, worker, origin):
        self.requests += 1
        task = self.loop.create_task(worker.send(origin), name=f"{self.requests:06}")
        worker.tasks[task] = None  # in order: a seed is to replay
        task.add_done_callback(lambda task: worker.tasks.pop(task, None))
        task.add_done_callback(self.task_ended)
        return task

    def task_ended(self, task):
        if not task.cancelled() and task.exception() is not None:
            self.problems.append(task.exception())

    async def run(self):
        random = self.random
        workers = [Worker(self) for _ in range(self.most_workers)]
        tasks = []
        while len(tasks) < self.most_requests:
            await asyncio.sleep(random.expovariate(1 / self.pace))
            chance = random.random()
            worker = random.choice(workers)
            if chance < self.deaths:
                self.faults["worker dies"] += 1
                worker.alive = False  # whichever await it is at, nothing of it happens any more
                for task in list(worker.tasks):
                    task.cancel()
                workers.remove(worker)
                workers.append(Worker(self))
            elif chance < self.deaths + self.cancels:
                if worker.tasks:
                    self.faults["cancelled"] += 1
                    random.choice(list(worker.tasks)).cancel()
            elif chance < self.deaths + self.cancels + self.cuts:
                self.faults["worker cut off"] += 1
                seconds = random.uniform(1, 60)
                worker.cut_off_until = self.loop.now + seconds
                self.trouble(seconds + 30)  # and as long the guard asks no more
            elif chance < self.deaths + self.cancels + self.cuts + self.jumps:
                self.faults["clock jumps"] += 1
                self.ahead += random.choice((-1, 1)) * random.choice((1, 100, 1e5))
                self.trouble()
            else:
                tasks.append(self.send(worker, random.choice(self.origins)))
        await self.end(tasks)

    async def end(self, tasks):
        """Wait for all, no longer than they may take."""
        each = (
            max(2 * max(self.delays.values()), 4.0) + TIMEOUT + BUSY + STOP * (self.stops > 0) + 10
        )
        pauses = 2 * LONGEST_PAUSE + 12 * TIMEOUT
        refused = self.faults["site begins to refuse"] + self.faults["site hangs"] + 10
        if tasks:
            await asyncio.wait(tasks, timeout=1_000 + each * len(tasks) + pauses * refused)
        late = sum(not task.done() for task in tasks)
        if late and not self.problems:
            raise ViolationError(f"{late} requests that never end")

    def clean_up(self):
        """End what dead workers have left behind."""
        for _ in range(10):
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task._log_destroy_pending = False
                task.cancel()
            waiting = asyncio.wait(tasks, timeout=1e6) if tasks else asyncio.sleep(0)
            with suppress(DeadlockError):
                self.loop.run_until_complete(waiting)


def simulate(seed, **sizes):
    """Run a world to the end, and return it. Raises ViolationError, which names the seed."""
    world = World(seed, **sizes)
    asyncio.set_event_loop(world.loop)
    try:
        world.loop.run_until_complete(world.run())
        if world.problems:
            raise world.problems[0]
    except ViolationError as violation:
        raise ViolationError(f"seed {seed}: {violation}") from violation
    except DeadlockError:
        what = world.problems[0] if world.problems else "nothing goes on any more"
        raise ViolationError(f"seed {seed}: {what}") from None
    finally:
        world.clean_up()
        asyncio.set_event_loop(None)
    return world
