from __future__ import annotations

import pytest

from tests.crawling.web import Web


@pytest.fixture(scope="session")
def web():
    web = Web()
    yield web
    web.close()
