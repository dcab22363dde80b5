"""Some thousand steps of the model; ``make model`` takes a million."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from scrapy_rep.scheduler.disk import Disk
from scrapy_rep.scheduler.due import DueTimes
from scrapy_rep.scheduler.origin_queues import Slot
from scrapy_rep.scheduler.waiting_lanes import WaitingLanes
from tests.scheduler.model import run

STEPS = 500

enter, due, taken = Slot.add, DueTimes.set, Disk.pop


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_each_request_comes_once_in_its_order_and_nobody_waits_for_ever(random):
    run(random, STEPS, note)


def a_lane_is_lost_when_its_priority_changes(self, lane, rank):
    if lane.rank is None or rank[0] == lane.rank[0]:
        enter(self, lane, rank)
    else:
        lane.rank = rank


def a_lane_that_waits_is_not_due(self, key, at):
    due(self, key, at)
    self._at.pop(key, None)


def a_lane_is_not_told(self, origin):
    self._by_origin.pop(origin, None)


def a_row_is_not_taken_out(self, lane):
    request = taken(self, lane)
    self._out.clear()
    return request


BREAKAGES = [
    (Slot, "add", a_lane_is_lost_when_its_priority_changes),
    (DueTimes, "set", a_lane_that_waits_is_not_due),
    (WaitingLanes, "hold_changed", a_lane_is_not_told),
    (Disk, "pop", a_row_is_not_taken_out),
]


@pytest.mark.parametrize(("owner", "name", "broken"), BREAKAGES)
def test_a_broken_line_is_found(owner, name, broken):
    with patch.object(owner, name, broken), pytest.raises(AssertionError):
        [run(Random(seed), STEPS) for seed in range(20)]
