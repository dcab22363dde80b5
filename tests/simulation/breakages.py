"""One line broken at a time, to see that the simulation finds it."""

from __future__ import annotations

from unittest.mock import patch

from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.admission.pauses import Pauses
from scrapy_rep.downloadermiddlewares.waits import Waits
from scrapy_rep.stores.base import PAUSE, Claim
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.requests import host_of

change = MemoryStore._change
pause_after = Pauses.after
acquire, ended = Hosts.acquire, Hosts.ended
hold_on_wire = Hosts._hold_on_wire


def a_lease_is_given_to_all(self, asked):
    return change(self, asked._replace(force=True) if isinstance(asked, Claim) else asked)


def a_pause_replaces_no_lease(self, asked):
    return change(self, asked._replace(force=False) if isinstance(asked, Claim) else asked)


def a_pause_becomes_shorter(self, asked):
    if isinstance(asked, Claim) and asked.holder == PAUSE:
        self._leases.pop(asked.key, None)
    return change(self, asked)


def any_lease_is_released(self, asked):
    if not isinstance(asked, Claim):
        self._leases.pop(asked.key, None)
    return change(self, asked)


def one_of_those_who_wait_is_woken(self, origin):
    for waiter in list(self._by_origin.get(origin, ()))[:1]:
        waiter.set_result(None)


def the_delay_counts_from_the_send(self, request, sent_at, response):
    host = self._hosts.get(host_of(request))
    if host is not None and sent_at is not None:
        host.next_to_send = sent_at + host.delay
    ended(self, request, sent_at, response)


def what_begins_during_a_claim_is_not_seen(self, origin, request, delay):
    if request.meta.pop("is_claimed", False):
        return None
    found = hold_on_wire(self, origin, request, delay)
    request.meta["is_claimed"] = found is None
    return found


async def each_is_a_probe(self, origin, request, delay):
    if origin.host in self.paused:
        return hold_on_wire(self, origin, request, delay)
    return await acquire(self, origin, request, delay)


def who_is_refused_stays_the_probe(self, host, request, seconds):
    pass


def any_request_ends_the_lease(self, request, sent_at, response):
    ended(self, request, sent_at, response)
    self.leases.ended(host_of(request), 0.0, 0.0)


def who_was_under_way_ends_the_pause(self, before, request, sent_at, response, *, is_probe):
    return pause_after(self, before, request, self._clock.monotonic(), response, is_probe=is_probe)


async def pauses_are_not_read(self):
    pass


BREAKAGES = {
    broken.__name__.replace("_", " "): (owner, name, broken)
    for owner, name, broken in [
        (MemoryStore, "_change", a_lease_is_given_to_all),
        (MemoryStore, "_change", a_pause_replaces_no_lease),
        (MemoryStore, "_change", a_pause_becomes_shorter),
        (MemoryStore, "_change", any_lease_is_released),
        (Waits, "hold_changed", one_of_those_who_wait_is_woken),
        (Hosts, "ended", the_delay_counts_from_the_send),
        (Hosts, "acquire", each_is_a_probe),
        (Hosts, "_not_sent", who_is_refused_stays_the_probe),
        (Pauses, "after", who_was_under_way_ends_the_pause),
        (Hosts, "read_pauses", pauses_are_not_read),
        (Hosts, "ended", any_request_ends_the_lease),
        (Hosts, "_hold_on_wire", what_begins_during_a_claim_is_not_seen),
    ]
}


def broken(name):
    """Break a line for as long as this context lasts."""
    return patch.object(*BREAKAGES[name])
