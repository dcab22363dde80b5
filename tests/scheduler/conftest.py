from __future__ import annotations

import pytest

from tests.scheduler.queues import OPENED


@pytest.fixture(autouse=True)
def _files_are_closed():
    yield
    while OPENED:
        OPENED.pop()._connection.close()
