import pytest

from tests.scheduler.queues import LEFT_OPEN


@pytest.fixture(autouse=True)
def _all_is_closed():
    yield
    while LEFT_OPEN:
        LEFT_OPEN.pop().close()


@pytest.fixture
def redis(redis_server):
    client = redis_server.client
    client.flushall()
    yield client
    client.replicaof("NO", "ONE")
