"""A mapping bounded by entries and bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.utils.lru import BoundedCache


def test_least_recently_used_goes_first():
    cache = BoundedCache(max_entries=2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    assert cache.evicted == 0
    cache.put("c", 3)
    assert cache.evicted == 1
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_bounded_by_bytes():
    cache = BoundedCache(max_bytes=100)
    for key in range(10):
        cache.put(key, key, 30)
    assert (len(cache), cache._bytes) == (3, 90)


def test_the_newest_stays_however_large():
    cache = BoundedCache(max_bytes=100)
    cache.put("a", 1, 50)
    cache.put("b", 2, 500)
    assert (cache.get("a"), cache.get("b")) == (None, 2)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.booleans())),
    st.integers(1, 5),
    st.integers(1, 100),
)
def test_it_counts_what_it_holds(steps, max_entries, max_bytes):
    cache = BoundedCache(max_entries=max_entries, max_bytes=max_bytes)
    sizes = {}
    for key, nbytes, drop in steps:
        if drop:
            cache.discard(key)
        else:
            cache.put(key, key, nbytes)
            sizes[key] = nbytes
        held = [key for key in range(10) if cache.get(key) is not None]
        assert len(held) == len(cache) <= max_entries
        assert cache._bytes == sum(sizes[key] for key in held)
        assert len(cache) <= 1 or cache._bytes <= max_bytes
