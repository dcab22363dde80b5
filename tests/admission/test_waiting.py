"""What waits, beside a plain list of it, in made-up time."""

import math

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.admission.reason import Hold, Reason
from scrapy_rep.admission.waiting import Waiting
from tests.admission.scene import A, B
from tests.made_up_time import MadeUpTime

KEYS = st.sampled_from("abcdef")
ORIGINS = st.sampled_from([A, B, None])
SECONDS = st.sampled_from([0.0, 1.0, 2.5, 7.0, math.inf])
STEPS = st.one_of(
    st.tuples(st.just("add"), KEYS, ORIGINS, SECONDS),
    st.tuples(st.just("discard"), KEYS),
    st.tuples(st.just("change"), st.sampled_from([A, B])),
    st.tuples(st.just("advance"), st.sampled_from([0.0, 0.5, 3.0])),
)


class Plain:
    """The same, with nothing that makes it fast."""

    def __init__(self):
        self.holds = {}

    def add(self, key, origin, until):
        self.holds.pop(key, None)
        self.holds[key] = origin, until

    def of(self, origin):
        return [key for key, (other, _) in self.holds.items() if other == origin]

    def due(self, now):
        return [key for key, (_, until) in self.holds.items() if until <= now]

    def end(self, keys):
        for key in keys:
            del self.holds[key]
        return sorted(keys)


@given(st.lists(STEPS, max_size=200))
def test_each_key_is_ready_once_at_its_time_or_when_its_hold_changes(steps):
    time, plain, ready = MadeUpTime(), Plain(), []
    waiting = Waiting(time.clock, ready.extend)
    for what, *arguments in steps:
        expected = []
        if what == "add":
            key, origin, seconds = arguments
            until = time.now + seconds
            waiting.add(key, origin, Hold(Reason(), until))
            plain.add(key, origin, until)
        elif what == "discard":
            waiting.discard(*arguments)
            plain.holds.pop(arguments[0], None)
        elif what == "change":
            assert waiting.keys_of(*arguments) == plain.of(*arguments)
            waiting.hold_changed(*arguments)
            expected = plain.end(plain.of(*arguments))
        else:
            time.advance(*arguments)
            expected = plain.end(plain.due(time.now))
        assert sorted(ready) == expected
        ready.clear()
        assert {key: (origin, hold.until) for key, origin, hold in waiting} == plain.holds
        assert len(waiting) == len(plain.holds)
        assert all(key in waiting for key in plain.holds)
        # One timer for all, which comes with the first.
        ends = [until for _, until in plain.holds.values() if until < math.inf]
        assert len(time.timers) <= 1
        assert not ends or time.timers[0] <= min(ends)
        assert len(waiting._heap) <= 2 * len(plain.holds) + 17
    assert sorted(waiting.close()) == sorted(plain.holds)
    assert time.timers == []
    time.advance(10)
    assert ready == []


def test_a_timer_that_fires_early_ends_the_wait_all_the_same():
    time, ready = MadeUpTime(), []
    waiting = Waiting(time.clock, ready.extend)
    waiting.add("a", A, Hold(Reason(), 1.0))
    (timer,) = time.calls
    time.now = 0.999
    timer.call()
    assert ready == ["a"]
