"""Some thousand steps of the model; ``make model`` takes a million."""

import math
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.scheduler.request_heaps import RequestHeaps
from scrapy_rep.scheduler.request_table import RequestTable
from tests.scheduler.model import run

STEPS = 500

ready, wait, unknown = RequestHeaps._set_ready, RequestHeaps.set_waiting, RequestHeaps.next_unknown
held, leave_out, wake_due = Hosts._hold_on_wire, RequestTable._leave_out, RequestTable.wake_due


@pytest.mark.first
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_each_request_comes_once_in_its_order_and_nobody_waits_for_ever(random):
    run(random, STEPS, note)


def a_lane_is_lost_when_its_priority_changes(self, heap):
    rank = heap.rank
    if rank is None or rank[1] == heap.requests[0][0]:
        ready(self, heap)
    else:
        self._ready.remove(rank)


def a_lane_that_waits_is_not_due(self, lane, until):
    wait(self, lane, until)
    self._due.clear()


def a_lane_is_not_told(self, origin):
    return False


def the_due_time_is_forgotten(self, now):
    wake_due(self, now)
    return math.inf


def it_is_returned_but_stays(self):
    return origin if (origin := unknown(self)) is None else unknown(self)


def a_host_is_not_told(self, host):
    host.waiting.clear()


def nothing_is_noted(self, *arguments):
    return 0.0


async def nobody_is_the_probe(self, *arguments):
    return self._hold_on_wire(*arguments)


def a_probe_is_forgotten(self, origin, *arguments):
    if origin.host in self.paused:
        self.paused[origin.host].under_way = None
    return held(self, origin, *arguments)


def a_popped_row_is_not_left_out(self, lane, number):
    leave_out(self, lane, number)
    self._run("DELETE FROM popped")


BREAKAGES = [
    (RequestHeaps, "_set_ready", a_lane_is_lost_when_its_priority_changes),
    (RequestHeaps, "set_waiting", a_lane_that_waits_is_not_due),
    (RequestHeaps, "wake", a_lane_is_not_told),
    (RequestHeaps, "next_unknown", it_is_returned_but_stays),
    (RequestTable, "wake", a_lane_is_not_told),
    (RequestTable, "wake_due", the_due_time_is_forgotten),
    (RequestTable, "_leave_out", a_popped_row_is_not_left_out),
    (RequestTable, "delete_finished", nothing_is_noted),
    (Hosts, "_wake", a_host_is_not_told),
    (Hosts, "acquire", nobody_is_the_probe),
    (Hosts, "_hold_on_wire", a_probe_is_forgotten),
    (Hosts, "_adopt_pause", nothing_is_noted),
]


@pytest.mark.parametrize(("owner", "name", "broken"), BREAKAGES)
def test_a_broken_line_is_found(owner, name, broken):
    with patch.object(owner, name, broken), pytest.raises((AssertionError, IndexError)):
        [run(Random(seed), STEPS) for seed in range(20)]
