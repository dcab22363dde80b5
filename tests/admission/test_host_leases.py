"""The leases by which two workers keep the delay and the pauses of a host together."""

import pytest

from scrapy_rep.admission.host_leases import HostLeases
from scrapy_rep.stores.base import PAUSE
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.concurrency import Clock
from tests.stores.test_contract import LONG, is_about, memory, sqlite
from tests.waiting import PATIENCE

pytestmark = pytest.mark.in_asyncio
HOST = "example.com"


@pytest.fixture(params=["memory", "sqlite"])
def workers(request, tmp_path):
    opened = memory() if request.param == "memory" else sqlite(tmp_path / "robots.sqlite")
    store = WriteBehind(opened, timeout=PATIENCE)
    return store, [HostLeases(store, Clock()) for _ in range(2)]


async def test_a_pause_is_known_to_all_and_the_longest_holds(workers):
    store, (first, second) = workers
    assert await first.claim(HOST, LONG) is None
    first.ended(HOST, None, 3 * LONG)
    second.ended(HOST, None, 2 * LONG)
    first.ended(HOST, LONG, 0)
    assert list(await second.pauses_left()) == [HOST]
    assert is_about(await second.claim(HOST, LONG), PAUSE, 3 * LONG)
    assert await first.pause_until(HOST) is not None
    assert await first.pause_until("other.example") is None
    await store.close()
