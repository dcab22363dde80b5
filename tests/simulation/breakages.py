"""One line broken at a time, to see that the simulation finds it."""

from __future__ import annotations

import math
from unittest.mock import patch

from scrapy_rep import CrawlClosingError
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.cache.cache import Cache
from scrapy_rep.cache.joined_lookups import JoinedLookups
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.protocol.fetch_policy import Access, AllowedPages, Policy
from scrapy_rep.protocol.verdict import Reason
from scrapy_rep.stores import sqlite
from scrapy_rep.stores.base import Lease
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.requests import host_of

known, access, land, claim = (
    Cache.known_entry,
    Policy.access,
    JoinedLookups._pass_result,
    MemoryStore.claim,
)
come, pause_after = Gate._wake, Hosts._pause_after
sent, ended = Hosts.sent, Hosts.ended
hold, end, pauses_left = Admission.hold, Admission.ended, HostLeases.pauses_left


def answers_are_used_for_ever(self, origin):
    return self._entries.get(origin)


def unreachable_is_open(self, record, now):
    got = access(self, record, now)
    if got.pages is AllowedPages.NONE:
        return Access(AllowedPages.ALL, Reason.UNAVAILABLE, None, got.start, got.end)
    return got


def expired_records_are_used(self, record, now, began):
    return record is None


async def leases_are_given_to_all(self, origin, holder, seconds, **_):
    return (await claim(self, origin, holder, seconds))._replace(lease=Lease(holder, seconds))


async def leases_come_without_the_record(self, origin, holder, seconds, **_):
    return (await claim(self, origin, holder, seconds))._replace(record=None)


def one_waiter_is_told(self, origin, flight, result, failure):
    flight.waiters[1:] = []
    land(self, origin, flight, result, failure)


def a_flight_is_cancelled_and_nobody_told(self):
    self.closing = True
    for flight in list(self._lookups.values()):
        flight.task.cancel()


def a_closing_crawl_flies_on(self):
    for origin, flight in list(self._lookups.items()):
        self._pass_result(origin, flight, None, CrawlClosingError())


BREAKAGES = {
    broken.__name__: (owner, name, broken)
    for owner, name, broken in [
        (Cache, "known_entry", answers_are_used_for_ever),
        (Policy, "access", unreachable_is_open),
        (Policy, "is_due", expired_records_are_used),
        (MemoryStore, "claim", leases_are_given_to_all),
        (MemoryStore, "claim", leases_come_without_the_record),
        (JoinedLookups, "_pass_result", one_waiter_is_told),
        (JoinedLookups, "close", a_flight_is_cancelled_and_nobody_told),
        (JoinedLookups, "close", a_closing_crawl_flies_on),
    ]
}


def one_of_those_who_wait_is_woken(self, due):
    come(due[:1])


def the_delay_counts_from_the_send(self, host, request, sent_at, response):
    if host in self._hosts:
        self._hosts[host].next_to_send = sent_at + self._hosts[host].delay
    return ended(self, host, request, sent_at, response)


def a_claim_takes_no_time(self, ask):
    host = self._hosts.get(ask.host)
    return sent(self, ask) if host is None or host.last is not ask.head() else 0.0


def what_begins_during_a_claim_is_not_seen(self, ask):
    if getattr(ask, "is_claimed", False):
        ask.is_claimed = False
        return None
    found = hold(self, ask)
    ask.is_claimed = ask.on_wire and found is None
    return found


def each_is_a_probe(self, ask):
    return 60.0 if ask.host in self.refused else sent(self, ask)


def who_is_refused_stays_the_probe(self, ask, left, *, paused):
    if paused:
        self._adopt_pause(ask.host, left)


def any_request_ends_the_lease(self, request, sent_at, response):
    end(self, request, sent_at, response)
    self._leases.ended(host_of(request), 0.0, 0.0)


def who_was_under_way_ends_the_pause(self, host, request, sent_at, response, *, is_probe):
    return pause_after(self, host, request, math.inf, response, is_probe=is_probe)


def pauses_are_not_read(self):
    return None


async def nobody_knows_who_has_refused(self):
    return {host: left for host, left in (await pauses_left(self)).items() if left}


def in_sql(name, statement, was, becomes):
    broken = statement.replace(was, becomes)
    assert broken != statement
    return sqlite, name, broken


CLAIM, RELEASE = sqlite._CLAIM, sqlite._RELEASE
BREAKAGES_OF_TURNS = {
    "a lease is given to all": in_sql("_CLAIM", CLAIM, "WHERE :force OR", "WHERE 1 OR"),
    "who has not the lease renews it": in_sql(
        "_CLAIM", CLAIM, "OR leases.holder =", "OR leases.holder !="
    ),
    "a pause becomes shorter": in_sql("_CLAIM", CLAIM, "THEN max(", "THEN min("),
    "a pause replaces no lease": in_sql("_CLAIM", CLAIM, "WHERE :force OR", "WHERE"),
    "any lease is released": in_sql("_RELEASE", RELEASE, "holder = ?", "? IS NOT NULL"),
    **{
        broken.__name__.replace("_", " "): (owner, name, broken)
        for owner, name, broken in [
            (Gate, "_wake", one_of_those_who_wait_is_woken),
            (Hosts, "ended", the_delay_counts_from_the_send),
            (Hosts, "sent", a_claim_takes_no_time),
            (Hosts, "sent", each_is_a_probe),
            (Hosts, "not_sent", who_is_refused_stays_the_probe),
            (Hosts, "_pause_after", who_was_under_way_ends_the_pause),
            (Hosts, "read_pauses", pauses_are_not_read),
            (HostLeases, "pauses_left", nobody_knows_who_has_refused),
            (Admission, "ended", any_request_ends_the_lease),
            (Admission, "hold", what_begins_during_a_claim_is_not_seen),
        ]
    },
}


def broken(name):
    """Break a line for as long as this context lasts."""
    return patch.object(*{**BREAKAGES, **BREAKAGES_OF_TURNS}[name])
