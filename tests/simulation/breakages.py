"""One line broken at a time, to see that the simulation finds it."""

from __future__ import annotations

from unittest.mock import patch

from scrapy_rep import CrawlClosingError
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.flights import Flights
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.protocol.policy import Access, Grant, Policy
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.scheduler import turns
from scrapy_rep.scheduler.turns import Turns
from scrapy_rep.stores import sqlite
from scrapy_rep.stores.memory import MemoryStore

take, come = Turns.use, WaitingRequests._wake
known, access, land, claim = (
    Cache.known_entry,
    Policy.access,
    Flights._pass_result,
    MemoryStore.claim,
)


def answers_are_used_for_ever(self, origin):
    return self._entries.get(origin)


def unreachable_is_open(self, record, now):
    got = access(self, record, now)
    if got.grant is Grant.NONE:
        return Access(Grant.ALL, Reason.UNAVAILABLE, None, got.start, got.end)
    return got


def expired_records_are_used(self, record, now, began):
    return record is None


async def leases_are_given_to_all(self, origin, holder, seconds):
    return (await claim(self, origin, holder, seconds))._replace(holder=holder)


async def leases_come_without_the_record(self, origin, holder, seconds):
    return (await claim(self, origin, holder, seconds))._replace(record=None)


def one_waiter_is_told(self, origin, flight, result, failure):
    flight.waiters[1:] = []
    land(self, origin, flight, result, failure)


def a_flight_is_cancelled_and_nobody_told(self):
    self.closing = True
    for flight in list(self._flights.values()):
        flight.task.cancel()


def a_closing_crawl_flies_on(self):
    for origin, flight in list(self._flights.items()):
        self._pass_result(origin, flight, None, CrawlClosingError())


BREAKAGES = {
    broken.__name__: (owner, name, broken)
    for owner, name, broken in [
        (Cache, "known_entry", answers_are_used_for_ever),
        (Policy, "access", unreachable_is_open),
        (Policy, "is_due", expired_records_are_used),
        (MemoryStore, "claim", leases_are_given_to_all),
        (MemoryStore, "claim", leases_come_without_the_record),
        (Flights, "_pass_result", one_waiter_is_told),
        (Flights, "close", a_flight_is_cancelled_and_nobody_told),
        (Flights, "close", a_closing_crawl_flies_on),
    ]
}


def one_of_those_who_wait_is_woken(self, due):
    come(due[:1])


def a_turn_is_used_twice(self, request, origin, seconds):
    turn = self._turns.get(origin.host)
    hold = take(self, request, origin, seconds)
    if hold is None and not hasattr(turn, "again"):
        self._turns[origin.host], turn.again = turn, True
    return hold


RESERVE = sqlite._RESERVE
BREAKAGES_OF_TURNS = {
    "one turn for all": (
        sqlite,
        "_RESERVE",
        RESERVE.replace(":step + max(", ":step + min(0, 1) * max("),
    ),
    "any turn is given back": (
        sqlite,
        "_RESERVE",
        RESERVE.replace("next = :unused", ":unused IS NOT NULL"),
    ),
    "a clock that was set back is waited for": (
        sqlite,
        "_RESERVE",
        RESERVE.replace("max(:now, made)", ":now"),
    ),
    "turns are used however late": (turns, "_LATE", 10.0),
    "one of those who wait is woken": (WaitingRequests, "_wake", one_of_those_who_wait_is_woken),
    "a turn is used twice": (Turns, "use", a_turn_is_used_twice),
}


def broken(name):
    """Break a line for as long as this context lasts."""
    return patch.object(*{**BREAKAGES, **BREAKAGES_OF_TURNS}[name])
