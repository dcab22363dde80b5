import pytest

from tests.scheduler.queues import LEFT_OPEN


@pytest.fixture(autouse=True)
def _all_is_closed():
    yield
    while LEFT_OPEN:
        LEFT_OPEN.pop().close()
