"""What keeps no more than it is told to."""

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.utils.bounded import BoundedCache, ExpiringDict, Once


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


def test_only_the_first_time_is_the_first():
    once = Once()
    assert [once.add_if_new(thing) for thing in ("a", "b", "a", ("a", 1), "a")] == [
        True, True, False, True, False,
    ]  # fmt: skip


def test_not_more_is_remembered_than_the_bound():
    once = Once()
    for number in range(20_000):
        assert once.add_if_new(number)
    assert once.add_if_new(0)
    assert not once.add_if_new(19_999)
    assert len(once._seen) == 10_000


def test_what_is_over_is_removed_when_there_is_much():
    now, looked = 0, []

    def is_over(until):
        looked.append(until)
        return until <= now

    values = ExpiringDict(4, is_over)
    for key in range(32):
        assert values.put(key, 10) == 10
    # All of them stay: the more there are, the less often they are searched.
    assert len(values) == 32
    assert len(looked) == 4 + 8 + 16
    now = 10
    values.put(0, 20)  # a key that is there already
    assert len(values) == 32
    values.put(32, 20)
    assert values == {0: 20, 32: 20}
    looked.clear()
    for key in range(33, 36):
        values.put(key, 20)
    assert len(looked) == 4
