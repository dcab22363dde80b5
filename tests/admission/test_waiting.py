"""What waits, where a timer fires early; all else of it: tests/scheduler/model.py."""

from scrapy_rep.admission.reason import Hold, HoldReason
from scrapy_rep.admission.waiting import Waiting
from tests.admission.scene import A
from tests.made_up_time import MadeUpTime


def test_a_timer_that_fires_early_ends_the_wait_all_the_same():
    time, ready = MadeUpTime(), []
    waiting = Waiting(time.clock, ready.extend)
    waiting.add("a", A, Hold(HoldReason(""), 1.0))
    (timer,) = time.calls
    time.now = 0.999
    timer.call()
    assert ready == ["a"]
