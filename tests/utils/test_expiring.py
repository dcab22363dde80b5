"""A mapping that removes what is over."""

from __future__ import annotations

from scrapy_rep.utils.expiring import ExpiringDict


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
