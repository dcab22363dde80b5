from __future__ import annotations

import pytest

from tests.scheduler.queues import OPENED, TIMED


@pytest.fixture(autouse=True)
def _files_are_closed():
    yield
    while OPENED:
        OPENED.pop()._file.close()


@pytest.fixture(autouse=True)
def _timers_are_stopped():
    yield
    while TIMED:
        TIMED.pop().close()


@pytest.fixture
def small_memory(monkeypatch):
    """As in a crawl of a million hosts: most slots are on disk alone."""
    monkeypatch.setattr("scrapy_rep.scheduler.slots_on_disk._MAX_LANES", 10)
    monkeypatch.setattr("scrapy_rep.scheduler.slots_on_disk._STEP", 5)
