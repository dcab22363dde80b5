from __future__ import annotations

import pytest

from tests.redis_server import RedisServer, needs_redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    needs_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()
