"""What tests of all kinds share."""

from __future__ import annotations

import pytest

from tests.redis_server import RedisServer, needs_redis


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    needs_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


def pytest_addoption(parser):
    parser.addoption(
        "--fault-table", action="store_true", help="print what each robots.txt fault came to"
    )
