"""Some thousand steps of the model; ``make model`` takes a million."""

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.hosts import Hosts
from scrapy_rep.admission.waiting import Waiting
from scrapy_rep.scheduler.lanes import Slot
from scrapy_rep.scheduler.request_file import RequestFile
from tests.scheduler.model import run

STEPS = 500

enter, wait, held, keys = Slot.set_rank, Waiting.add, Hosts.hold, RequestFile.keys


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_each_request_comes_once_in_its_order_and_nobody_waits_for_ever(random):
    run(random, STEPS, note)


def a_lane_is_lost_when_its_priority_changes(self, lane, rank):
    if lane.rank is None or rank[0] == lane.rank[0]:
        enter(self, lane, rank)
    else:
        lane.rank = rank


def a_lane_that_waits_is_not_due(self, key, origin, hold):
    wait(self, key, origin, hold)
    self._heap.clear()


def a_lane_is_not_told(self, origin):
    for key in self._by_origin.pop(origin, ()):
        del self._holds[key]


def a_host_is_not_told(self, host):
    self._waiting_origins.pop(host, None)


def nothing_is_noted(self, *arguments):
    return 0.0


def a_probe_is_forgotten(self, ask):
    if ask.host in self.refused:
        self.refused[ask.host].last = None
    return held(self, ask)


def popped_rows_are_not_left_out(self, *arguments):
    with patch.object(self, "_popped", ()):
        return keys(self, *arguments)


BREAKAGES = [
    (Slot, "set_rank", a_lane_is_lost_when_its_priority_changes),
    (Waiting, "add", a_lane_that_waits_is_not_due),
    (Waiting, "hold_changed", a_lane_is_not_told),
    (Admission, "_notify_host", a_host_is_not_told),
    (Hosts, "sent", nothing_is_noted),
    (Hosts, "hold", a_probe_is_forgotten),
    (Hosts, "_adopt_pause", nothing_is_noted),
    (RequestFile, "keys", popped_rows_are_not_left_out),
]


@pytest.mark.parametrize(("owner", "name", "broken"), BREAKAGES)
def test_a_broken_line_is_found(owner, name, broken):
    with patch.object(owner, name, broken), pytest.raises((AssertionError, IndexError)):
        [run(Random(seed), STEPS) for seed in range(20)]
