"""What keeps no more than it is told to."""

import math

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.utils.bounded import BoundedCache, Once

ACTS = st.sampled_from(["put", "put", "get", "discard"])


@given(
    st.lists(st.tuples(ACTS, st.integers(0, 4), st.integers(0, 9)), min_size=20),
    st.integers(1, 4),
    st.sampled_from([5, 20, math.inf]),
)
def test_the_least_recently_used_goes_first_and_the_newest_stays(steps, max_entries, max_bytes):
    cache = BoundedCache(max_entries=max_entries, max_bytes=max_bytes)
    sizes = {}  # the least recently used first
    evicted = 0
    for act, key, nbytes in steps:
        known = sizes.pop(key, None)
        if act == "put":
            cache.put(key, f"of {nbytes}", nbytes)
            sizes[key] = nbytes
        elif act == "discard":
            cache.discard(key)
        else:
            assert cache.get(key) == (None if known is None else f"of {known}")
            sizes |= {} if known is None else {key: known}
        while len(sizes) > 1 and (len(sizes) > max_entries or sum(sizes.values()) > max_bytes):
            del sizes[next(iter(sizes))]
            evicted += 1
        assert list(cache) == list(sizes)
        assert (cache._bytes, cache.evicted) == (sum(sizes.values()), evicted)


def test_not_more_is_remembered_than_the_bound():
    once = Once()
    for number in range(20_000):
        assert once.add_if_new(number)
    assert once.add_if_new(0)
    assert not once.add_if_new(19_999)
    assert len(once._seen) == 10_000
