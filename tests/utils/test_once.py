"""What has been told already."""

from __future__ import annotations

from scrapy_rep.utils.once import Once


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
