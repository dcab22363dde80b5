"""What the log says of sites that are down, or back, told apart from what it has said already."""

from __future__ import annotations

import logging

import pytest

from scrapy_rep.cache.log import LookupLog
from scrapy_rep.protocol.policy import Policy
from tests.stores.records import available, unreachable

BEGAN = 7.0
SITES = [f"https://{number}.example" for number in range(15)]
DOWN, STILL, KNOWN, BACK = "is unreachable", "is still", "has been unreachable", "is reachable"


@pytest.fixture
def scene(caplog):
    caplog.set_level(logging.DEBUG)
    return Scene(caplog)


class Scene:
    def __init__(self, caplog):
        self.log = LookupLog(Policy(), BEGAN)
        self.caplog = caplog

    def fetched(self, record, previous=None):
        self.log.log_fetched(record, previous, record.last.evidence.at)

    def found(self, record):
        self.log.log_stored_outage(record, record.last.evidence.at)

    def told(self, what, level):
        """The lines with these words at this level."""
        return [
            record.getMessage()
            for record in self.caplog.records
            if what in record.getMessage() and record.levelno == level
        ]


def test_of_each_kind_ten_lines_are_above_debug(scene):
    for site in SITES:
        scene.fetched(unreachable(site), available(site))
        scene.found(unreachable(f"{site}:1"))
        scene.fetched(unreachable(f"{site}:2"), unreachable(f"{site}:2", at=BEGAN - 1))
        scene.fetched(available(f"{site}:2"), unreachable(f"{site}:2"))
    for what, level in (
        (DOWN, logging.WARNING),
        (KNOWN, logging.INFO),
        (STILL, logging.INFO),
        (BACK, logging.INFO),
    ):
        lines = scene.told(what, level)
        assert [line.endswith(" - further ones are logged at DEBUG level") for line in lines] == [
            *[False] * 9,
            True,
        ]
        assert len(scene.told(what, logging.DEBUG)) == len(SITES) - 10


def test_what_is_down_is_told_once_however_it_is_learned(scene):
    before, now = unreachable(at=BEGAN - 1), unreachable(at=BEGAN + 1)
    scene.found(before)
    scene.found(now)
    scene.fetched(now, before)
    scene.fetched(now, now)
    assert len(scene.told("unreachable", logging.INFO)) == 1
    assert len(scene.told("unreachable", logging.DEBUG)) == 3


def test_what_another_worker_has_found_to_be_back_is_told_where_it_was_down(scene):
    scene.found(available())
    scene.fetched(unreachable())
    scene.found(available())
    scene.found(available())
    assert len(scene.told(BACK, logging.INFO)) == 1


def test_what_goes_down_again_is_told_again(scene):
    for _ in range(3):
        scene.fetched(unreachable(), available())
        scene.fetched(available(), unreachable())
    assert len(scene.told(DOWN, logging.WARNING)) == 3
    assert len(scene.told(BACK, logging.INFO)) == 3


def test_a_byte_is_counted_in_the_singular(scene):
    for body in (b"a", b"ab"):
        scene.fetched(available(SITES[0], body))
    answers = [line.partition("(")[2] for line in scene.told("available", logging.DEBUG)]
    sizes = ("1 byte", "2 bytes")
    assert answers == [f"status 200, {size}, redirects: 0)" for size in sizes]
