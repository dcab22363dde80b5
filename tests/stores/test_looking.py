"""What people do to a store, where it is a file: they look, and nothing else happens to it."""

from __future__ import annotations

import asyncio

import pytest

from scrapy_rep.stores import sqlite as module
from scrapy_rep.stores.base import StoreError
from tests.running import in_asyncio
from tests.stores.records import available
from tests.stores.test_contract import sqlite
from tests.stores.test_sqlite import DAMAGED, FOREIGN, rows


@pytest.mark.parametrize("make", [*DAMAGED, *FOREIGN], ids=lambda make: make.__name__)
@in_asyncio
async def test_a_file_that_is_none_of_ours_is_left_alone_by_who_only_looks(tmp_path, make):
    path = tmp_path / "robots.sqlite"
    make(path)
    before = path.read_bytes()
    store = sqlite(path, deletes_damaged=False)
    with pytest.raises(StoreError):
        await store.get("https://site-0.example")
    with pytest.raises(StoreError):
        await store.prune()
    with pytest.raises(StoreError):
        [key async for key in store.scan_keys()]
    with pytest.raises(StoreError):
        await store.discard("https://site-0.example")
    await store.close()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


@in_asyncio
async def test_all_that_is_too_old_goes_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PRUNE_ROWS", 100)
    path = tmp_path / "robots.sqlite"
    now = 1_000.0
    store = sqlite(path, max_age=500.0, clock=lambda: now)
    origins = [f"https://site-{number}.example" for number in range(350)]
    await asyncio.gather(*(store.put(available(origin)) for origin in origins))
    now += 501
    await store.put(available("https://new.example"))
    # The writer takes some by itself, when who wrote has been answered.
    assert len(rows(path)) > 1
    assert await store.prune() > 0
    assert rows(path) == [("https://new.example",)]
    await store.close()
