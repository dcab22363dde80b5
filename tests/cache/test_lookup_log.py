"""What the log says of sites that are down, or back, told apart from what it has said already."""

import logging

import pytest

from scrapy_rep.cache.lookup_log import LookupLog
from scrapy_rep.protocol.access_policy import Policy
from tests.stores.records import available, unreachable

BEGAN = 7.0


@pytest.fixture
def scene(caplog):
    caplog.set_level(logging.DEBUG)
    return Scene(caplog)


class Scene:
    def __init__(self, caplog):
        self.log = LookupLog(Policy(), BEGAN, None)
        self.caplog = caplog

    def fetched(self, record, previous=None):
        self.log.log_fetched(record, previous, record.last.evidence.at)

    def found(self, record):
        self.log.log_stored(record, record.last.evidence.at)

    def told(self, what, level):
        """The lines with these words at this level."""
        return [
            record.getMessage()
            for record in self.caplog.records
            if what in record.getMessage() and record.levelno == level
        ]


def test_what_is_down_is_told_once_however_it_is_learned(scene):
    before, now = unreachable(at=BEGAN - 1), unreachable(at=BEGAN + 1)
    scene.found(before)
    scene.found(now)
    scene.fetched(now, before)
    scene.fetched(now, now)
    begin = "robots.txt of https://example.com has been unreachable since 1970-01-01 00:00:03 UTC, "
    assert scene.told("unreachable", logging.INFO) == [
        f"{begin}known from an earlier try: status 503; its pages are disallowed, next try at "
        "1970-01-01 00:00:16 UTC"
    ]
    assert len(scene.told("unreachable", logging.DEBUG)) == 3
    scene.fetched(available(at=BEGAN + 20), now)
    assert scene.told("reachable again", logging.INFO) == [
        "robots.txt of https://example.com is reachable again, after being unreachable since "
        "1970-01-01 00:00:03 UTC: available (status 200, 33 bytes, redirects: 0)"
    ]


def test_what_another_worker_has_found_to_be_back_is_told_where_it_was_down(scene):
    scene.found(available())
    scene.fetched(unreachable())
    scene.found(available())
    scene.found(available())
    assert len(scene.told("is reachable", logging.INFO)) == 1
    scene.fetched(unreachable())
    assert len(scene.told("is unreachable", logging.WARNING)) == 2
