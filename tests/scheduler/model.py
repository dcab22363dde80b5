"""Queue, admission and disk together in made-up time, beside a plain list.

What leaves the queue is sent as the wire sends it, and answered, or refused with 429. Beside that
stands what must hold: the order of each lane, the delay of each host, and its pauses.

What is done comes from the random numbers that ``run`` is given: hypothesis has its own, so that it
finds the shortest way to what is wrong; ``python -m tests.fuzz.queue`` takes those of a seed.
"""

import itertools
import logging
import math
import pickle
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from scrapy import Request, squeues
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import RobotsAwarePriorityQueue
from scrapy_rep.admission import pauses
from scrapy_rep.admission.deferral import MARGIN
from scrapy_rep.admission.hold import UNKNOWN
from scrapy_rep.admission.ticket import Source, copy_for_scheduler, take_ticket
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.scheduler import priority_queue
from scrapy_rep.scheduler.request_table import RequestTable, _as_lane
from scrapy_rep.stores.base import PAUSE, Claim, key_of_host
from tests.admission.parts import DEFERRING, TIMEOUT, Parts, lease_store
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler
from tests.waiting import event_loop, settle

SITES = [*(f"http://{name}.example" for name in "abc"), "https://a.example"]
ORIGINS = [origin_of(site) for site in SITES]
USUAL = ["pushes"] * 2 + ["pops"] * 3 + ["sends"] * 2 + ["ends", "goes_on", "learns"]
USUAL *= 4
SELDOM = [
    *("fails", "forgets", "goes_on", "goes_back", "is_in_trouble"),
    *("refuses", "is_lost", "another_worker_sends", "another_worker_pauses"),
]
ON_DISK = ["spoils", "closes_and_goes_on", "is_killed"]
BODIES = [None, *[b"User-agent: *\nCrawl-delay: 2\n"] * 2, b"User-agent: *\nDisallow: /*0$\n"]
LATE = 1.01
"""Seconds after which a worker knows of the pauses that others have begun."""


def run(random, steps, say=lambda what: None):
    """Take so many steps and end; return how many requests there were.

    ``say`` is told of each step, and of all that was chosen for it.
    """
    model = Model(random, say)
    try:
        for _ in range(steps):
            model.step()
        model.come_to_an_end()
        return model.number
    finally:
        model.resources.close()


class Trouble:
    """Raises, once for each time that it was asked to."""

    def __init__(self, call):
        self.call = call
        self.times = 0

    def __call__(self, *arguments):
        if self.times:
            self.times -= 1
            raise OSError("made up")
        return self.call(*arguments)


class Model:
    def __init__(self, random, say):
        self.random = random
        self.say = say
        self.resources = ExitStack()
        logging.disable(logging.CRITICAL)
        self.resources.callback(logging.disable, logging.NOTSET)
        self.resources.enter_context(event_loop())
        self.number = 0
        self.turns = {}
        """Of each URL: its origin and slot, and what its place is among those of the same."""
        self.waiting = {}
        """Requests in the queue, by URL."""
        self.active = []
        """Requests that have left, and have not ended."""
        self.sent = {}
        """When those of them were sent that were."""
        self.ended = {}
        """Those that have ended since something was last popped; a kill may bring them again."""
        self.next_turns = {}
        """When each host may be sent the next request with a delay."""
        self.pauses = {}
        """Of each host that has refused: when its pauses began, and until when it may be sent none."""
        self.probes = {}
        """The only request that each host which has refused this worker may be sent after that, until
        it is answered; None before it is sent."""
        self.refused_until = {}
        """When the pauses end that this worker has begun."""
        self.time = MadeUpTime()
        self.store = lease_store(self.time)
        self.spoilt = set()
        """URLs of requests that can't be read."""
        self.order = self.choose(["Fifo", "Lifo"])
        self.permits = self.choose([1, 2, 3])
        most = self.choose([1, 2, 200])
        self.resources.enter_context(patch.object(priority_queue, "_MOST_ASKED", most))
        # Its own jitter would make each run another one.
        self.resources.enter_context(patch.object(pauses, "_JITTER", 0.0))
        self.folder = None
        if self.choose([False, True, True]):
            self.root = Path(tempfile.mkdtemp())
            self.resources.callback(shutil.rmtree, self.root)
            self.folder = self.root / "0"
            self.folder.mkdir()
        self.open(None)
        for origin in ORIGINS[:2]:
            self.parts.knows(origin, self.choose(BODIES))
        # Without what seldom is done, others come further.
        seldom = [*SELDOM, *(ON_DISK if self.folder else [])]
        self.rules = [*USUAL, *(rule for rule in seldom if self.choose([True, True, False]))]

    def choose(self, options):
        chosen = self.random.choice(options)
        self.say(f"    {chosen}")
        return chosen

    def step(self):
        """Do something, and see that all is well."""
        rule = self.random.choice(self.rules)
        self.say(rule)
        getattr(self, rule)()
        settle()
        self.all_are_counted()
        self.whoever_waits_is_going_to_be_woken()

    def open(self, state):
        self.probes.clear()
        self.crawler = FakeCrawler(**DEFERRING, REP_BACK_OFF_MAX=3 * TIMEOUT)
        self.parts = Parts(self.crawler, self.time, permits=self.permits, store=self.store)
        self.admission = self.parts.admission
        decider = self.parts.decider
        # Trouble in the admission alone.
        decider.origin_governing = lambda request: origin_of(request.url)
        self.needs = decider.needs_robotstxt = Trouble(decider.needs_robotstxt)
        kind = "Pickle%sDiskQueue" if self.folder else "%sMemoryQueue"
        self.queue = RobotsAwarePriorityQueue(
            self.crawler,
            getattr(squeues, kind % self.order),
            str(self.folder or ""),
            state,
            start_queue_cls=getattr(squeues, kind % "Fifo"),
            clock=self.time.clock,
        )
        if self.folder:
            self.resources.callback(self.queue._requests._connection.close)

    # What a crawl does.

    def pushes(self):
        meta = self.choose([{}, {}, {}, {"is_start_request": True}, {"download_slot": "another"}])
        url = f"{self.choose(SITES)}/{self.number}"
        self.push(Request(url, priority=self.choose([-1, 0, 1]), meta=meta))

    def push(self, request):
        self.number += 1
        self.queue.push(request)
        self.waiting[request.url] = request
        lane = origin_of(request.url), self.crawler.downloader.get_slot_key(request)
        start = request.meta.get("is_start_request", False)
        order = 1 if start or self.order == "Fifo" else -1
        self.turns[request.url] = lane, (-request.priority, start, order * self.number)

    def pops(self):
        self.ended.clear()
        request = self.queue.pop()
        if request is None:
            return
        assert request.url in self.waiting, "each comes once"
        lane, turn = self.turns[request.url]
        turns = (self.turns[url] for url in self.waiting)
        assert turn == min(other for at, other in turns if at == lane), "order within an origin"
        del self.waiting[request.url]
        self.crawler.downloader.begin(request)
        self.active.append(request)
        ticket = take_ticket(request)
        decision = self.parts.decider.known_decision(request)
        is_dropped = self.admission.hosts.is_dropping(host_of(request))
        if (
            ticket.source == Source.OVERDUE
            or is_dropped
            or not getattr(decision.verdict, "allowed", True)
        ):
            self.end(request)
            return
        if decision.entry is not None:
            decision.entry.mark_used()
        request.meta["delay"] = self.admission.hosts.delays.kept(decision)

    def sends(self):
        if waiting := [request for request in self.active if request not in self.sent]:
            self.send(self.choose(waiting))

    def send(self, request):
        """Send a request as the wire does; one that has to wait for long goes back."""
        admitted = deferred_from_coro(self.pass_wire(request))
        settle()
        if admitted.result is None:
            self.may_be_sent(request)
            self.sent[request] = self.time.now
            return
        assert admitted.result.reason is not UNKNOWN, "it was decided already"
        if admitted.result.until > self.time.now + 2:
            self.give_back(request)

    async def pass_wire(self, request):
        await self.admission.hosts.read_pauses()
        delay = request.meta["delay"]
        return await self.admission.hosts.acquire(origin_of(request.url), request, delay)

    def ends(self):
        if self.active:
            request = self.choose([*self.sent] or self.active)
            self.answer(request, 200)
            self.end(request)

    def answer(self, request, status, headers=None):
        sent_at = self.sent.pop(request, None)
        if sent_at is None:
            return
        response = None if status is None else Response(request.url, status, headers)
        host = host_of(request)
        _, until = self.pauses.get(host, (0.0, math.inf))
        if status == 200 and sent_at >= until:
            del self.pauses[host]
        if status == 200 and sent_at >= self.refused_until.get(host, 0.0):
            self.probes.pop(host, None)
        if self.probes.get(host) is request:
            self.probes[host] = None
        self.admission.hosts.ended(request, sent_at, response)
        settle()

    def end(self, request):
        self.active.remove(request)
        self.crawler.downloader.end(request)
        self.ended[request.url] = request

    def goes_back(self):
        if not self.active:
            return
        request = self.choose(self.active)
        self.answer(request, 200)
        self.give_back(request)

    def give_back(self, request):
        self.active.remove(request)
        self.push(copy_for_scheduler(request))
        self.crawler.downloader.end(request)
        # The engine asks for the next one then; killed before, the request comes twice.
        self.pops()

    # Refusals, and other workers.

    def refuses(self):
        if not self.sent:
            return
        request = self.choose([*self.sent])
        seconds = self.choose([None, None, 3, 20, 120])
        host = host_of(request)
        _, until = self.pauses.get(host, (0.0, 0.0))
        # Another worker's pause has a probe, too, if this worker knew of it.
        is_earlier = host not in self.probes and self.sent[request] < until
        if seconds or (self.probes.get(host) in {None, request} and not is_earlier):
            self.pause(host, seconds or 0)
            until = self.refused_until.get(host, 0.0)
            self.refused_until[host] = max(until, self.time.now + (seconds or 0))
            self.probes[host] = None
        self.answer(request, 429, {} if seconds is None else {"Retry-After": str(seconds)})
        self.end(request)

    def pause(self, host, seconds, *, late=0.0):
        _, until = self.pauses.get(host, (0.0, -math.inf))
        if self.time.now + seconds > until:
            self.pauses[host] = self.time.now + late, self.time.now + seconds
            if host in self.probes:
                self.probes[host] = None

    def is_lost(self):
        """A request ends without a response."""
        if self.sent:
            request = self.choose([*self.sent])
            self.answer(request, None)
            self.end(request)

    def another_worker_sends(self):
        self.claim("another", self.choose([1.0, 4.0]))

    def another_worker_pauses(self):
        host, lease = self.claim(PAUSE, self.choose([3.0, 10.0]), force=True)
        if lease.holder == PAUSE:
            self.pause(host, lease.left, late=LATE)

    def claim(self, holder, seconds, **how):
        host = self.choose(ORIGINS).host
        claim = Claim(key_of_host(host), holder, seconds, **how)
        claimed = deferred_from_coro(self.store.change(claim))
        settle()
        return host, claimed.result[0]

    # What becomes of robots.txt.

    def learns(self):
        origin = self.choose(ORIGINS)
        unreachable = self.choose([False, False, True])
        learns = self.parts.comes if origin in self.under_way else self.parts.knows
        body = self.choose(BODIES)
        learns(origin, body, unreachable=unreachable, seconds=self.choose([0, 5, 1000]))

    def fails(self):
        origin = self.choose(ORIGINS)
        if origin in self.under_way:
            self.parts.network.ends(origin, ZeroDivisionError("made up"))

    def forgets(self):
        self.parts.entries.discard(self.choose(ORIGINS))

    @property
    def under_way(self):
        return self.parts.network.under_way

    def goes_on(self):
        self.time.advance(self.choose([0.3, 0.3, 1.0, 1.0, 2.5, 7.0, 61.0]))

    def is_in_trouble(self):
        self.needs.times += 1

    # The disk.

    def spoils(self):
        if not self.waiting:
            return
        url = self.choose([*self.waiting])
        table = self.queue._requests
        rows = table._run("SELECT number, request FROM requests WHERE request != x'80'")
        (number,) = [
            number
            for number, data in rows.fetchall()
            if number not in table._in_progress and pickle.loads(data)["url"] == url
        ]
        table._run("UPDATE requests SET request = x'80' WHERE number = ?", (number,))
        del self.waiting[url]
        self.spoilt.add(url)

    def closes_and_goes_on(self):
        while self.active:
            self.answer(self.active[0], 200)
            self.end(self.active[0])
        self.ended.clear()
        self.close()
        self.open(self.queue.close())
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    def close(self):
        self.admission.close()
        self.parts.lookups.close()
        settle()

    def is_killed(self):
        killed = self.root / f"{int(self.folder.name) + 1}"
        shutil.copytree(self.folder, killed)
        self.close()
        self.queue.close()
        shutil.rmtree(self.folder)
        self.folder = killed
        self.open(None)
        table = self.queue._requests
        rows = table._run("SELECT request FROM requests WHERE request != x'80'")
        there = {pickle.loads(data)["url"] for (data,) in rows.fetchall()}
        self.waiting |= {request.url: request for request in self.active}
        assert {*self.waiting} <= there <= {*self.waiting, *self.ended}
        self.waiting |= {url: self.ended[url] for url in there - {*self.waiting}}
        self.active.clear()
        self.sent.clear()
        self.ended.clear()
        assert len(self.queue) == len(self.waiting) + len(self.spoilt)

    # What holds at any time.

    def all_are_counted(self):
        if self.admission.deferral.counts_as_empty(self.queue.count_deferred()):
            assert self.waiting or self.spoilt
            assert len(self.queue) == 0
            return
        assert 0 <= len(self.queue) - len(self.waiting) <= len(self.spoilt)

    def may_be_sent(self, request):
        """See that a request which is being sent keeps the delay of its host, and its pauses."""
        host, now = host_of(request), self.time.now
        if delay := request.meta["delay"]:
            assert now >= self.next_turns.get(host, 0.0), "in a delay"
            self.next_turns[host] = now + delay
        began, until = self.pauses.get(host, (math.inf, 0.0))
        if now >= began:
            assert now >= until, "in a pause"
        if host in self.probes:
            assert self.probes[host] is None, "beside a probe"
            self.probes[host] = request

    def whoever_waits_is_going_to_be_woken(self):
        lookups = self.admission.unknown
        has_room = self.parts.lookups.has_room
        waiting = dict(self.queue._requests.waiting())
        due = []
        for lane, until, is_unknown in self.lanes():
            if until is None:
                assert lane not in waiting
                continue
            hold = self.queue._holds.get(lane)
            assert hold is None or hold.until == until
            if hold is None:
                assert until == math.inf
                assert not has_room if is_unknown else lane.origin in lookups._under_way
            elif until == math.inf:
                assert self.admission.hosts._hosts[lane.origin.host].under_way in self.sent
            else:
                due.append(until)
        told = sorted((str(origin), n) for origin, _, _, n in self.admission.holds())
        assert told == sorted((str(lane.origin), size) for lane, size in waiting.items())
        # One timer for all, and it comes with the first.
        timers = self.parts.timers
        assert len(timers) <= 1
        assert not due or min(timers, default=math.inf) <= min(due) + 1e-9

    def lanes(self):
        """Return each lane, until when it waits, or None, and whether its lookup is to begin."""
        requests = self.queue._requests
        if isinstance(requests, RequestTable):
            rows = requests._run("SELECT number, slot, origin, until, asked FROM lanes").fetchall()
            return [(_as_lane(row[:3]), row[3], row[4] is not None) for row in rows]
        for heap in requests._heaps.values():
            assert (heap.rank is None) == (heap.until is not None)
            if heap.rank is not None:
                assert heap.rank in itertools.chain(*requests._ready._blocks)
        return [
            (lane, heap.until, lane in requests.unknown) for lane, heap in requests._heaps.items()
        ]

    def come_to_an_end(self):
        """Let all be known and every error be over: then all that waits comes, and is sent."""
        self.needs.times = 0
        for _ in range(3):
            self.admission.unknown.begin_lookups()
            settle()
            while self.under_way:
                self.parts.comes(next(iter(self.under_way)))
            for origin in ORIGINS:
                self.parts.knows(origin)
            self.time.advance(3 * TIMEOUT + MARGIN)
            for _ in range(2 * len(ORIGINS) + len(self.waiting)):
                self.pops()
                while self.active:
                    request = self.active[0]
                    if request not in self.sent:
                        self.send(request)
                    if request in self.active:
                        self.answer(request, 200)
                        self.end(request)
        assert len(self.queue) == len(self.waiting) == 0
        assert self.crawler.stats.get("robotstxt/queue/unreadable", 0) == len(self.spoilt)
        assert not self.queue._deferred_since
        assert not self.queue._holds
        self.close()
        assert self.parts.timers == []
        self.queue.close()


def host_of(request):
    return origin_of(request.url).host
