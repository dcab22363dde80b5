"""What may be fetched, over months of made-up time: SPEC F-5 to F-8 and F-11."""

import math
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.protocol.verdict import Reason

ORIGIN = "https://example.com"
FILE = origin_of(ORIGIN)
URL = f"{ORIGIN}/robots.txt"
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
START = 1_900_000_000.0
AT = START - DAY


def available(at, body=b"User-agent: *\nDisallow: /x", **headers):
    return Available(body, Evidence(at, URL, 200, **headers))


def unavailable(at, **headers):
    return Unavailable(Evidence(at, URL, 404, **headers))


def unreachable(at, status=500, **headers):
    return Unreachable(Evidence(at, URL, status, **headers))


def ended_with(*outcomes, policy=Policy(), jitter=0.0):  # noqa: B008 - immutable
    """The record after fetches that ended so, one after the other."""
    record = None
    for outcome in outcomes:
        record = policy.record_after(record, FILE, outcome, jitter=jitter)
    return record


def reason_of(access):
    """The reason of the verdict on all pages; None if rules decide."""
    return access.verdict and access.verdict.reason


class Months:
    """Time goes by; every fetch that is due is made, and ends as the site then is."""

    def __init__(self, **policy):
        self.policy = Policy(**policy)
        self.record = None
        self.fetches = []

    def go(self, start, end, step, site):
        """Ask every ``step`` seconds; return the reasons, in order, without repetition."""
        reasons = []
        now = start
        while now < end:
            if self.policy.is_due(self.record, now):
                self.fetches.append(now)
                self.record = self.policy.record_after(self.record, FILE, site(now), jitter=0.5)
            reason = reason_of(self.policy.access(self.record, now))
            if not reasons or reasons[-1] is not reason:
                reasons.append(reason)
            now += step
        return reasons


@pytest.mark.spec("F-5", "F-6")
@pytest.mark.rfc9309("2.4")
@pytest.mark.parametrize(
    ("site", "verdict"),
    [
        (unavailable, (True, Reason.UNAVAILABLE)),
        (unreachable, (False, Reason.UNREACHABLE)),
        (available, None),
    ],
)
@pytest.mark.parametrize("stale_after", [0.0, 30 * DAY])
def test_a_day_without_a_copy(site, verdict, stale_after):
    months = Months(unreachable_stale_after=stale_after)
    assert months.go(START, START + DAY, MINUTE, site) == [verdict and verdict[1]]
    access = months.policy.access(months.record, START)
    assert (access.verdict and access.verdict[:2]) == verdict
    assert access.may_allow is (site is not unreachable)


@pytest.mark.spec("F-8")
def test_without_a_copy_all_is_allowed_after_30_days():
    months = Months()
    assert months.go(START, START + 29.9 * DAY, HOUR, unreachable) == [Reason.UNREACHABLE]
    late = months.go(START + 30 * DAY, START + 90 * DAY, HOUR, unreachable)
    assert late == [Reason.UNREACHABLE_LONG]
    assert months.policy.access(months.record, START + 60 * DAY).verdict.allowed


@pytest.mark.spec("F-8")
def test_the_last_good_copy_is_used_after_30_days():
    months = Months()
    months.go(START, START + HOUR, HOUR, available)
    down = START + 2 * DAY
    assert months.go(down, down + 30 * DAY, HOUR, unreachable) == [Reason.UNREACHABLE]
    assert months.go(down + 30 * DAY, down + 90 * DAY, HOUR, unreachable) == [None]
    assert months.policy.access(months.record, down + 90 * DAY).copy == available(START)


@pytest.mark.spec("F-8")
def test_the_turn_comes_between_two_tries():
    policy = Policy(unreachable_allow_after=1_000.0, retry_delay=5_000.0, retry_delay_max=5_000.0)
    record = ended_with(unreachable(START), policy=policy)
    before = policy.access(record, START + 999)
    assert (reason_of(before), before.end) == (Reason.UNREACHABLE, START + 1_000)
    after = policy.access(record, START + 1_000)
    assert (reason_of(after), after.end) == (Reason.UNREACHABLE_LONG, START + 5_000)
    assert not policy.is_due(record, START + 1_000)


@pytest.mark.spec("F-11")
@pytest.mark.parametrize(
    ("cache_control", "fetches"),
    [(None, 31), ("max-age=43200", 62), ("max-age=2592000", 31), ("max-age=0", 31 * 24)],
)
def test_a_month_of_refreshes(cache_control, fetches):
    months = Months()
    months.go(START, START + 31 * DAY, HOUR, partial(available, cache_control=cache_control))
    assert len(months.fetches) == fetches


@pytest.mark.spec("F-11")
@pytest.mark.parametrize(
    ("outcome", "expires"),
    [(available(START), DAY), (unavailable(START, cache_control="max-age=3600"), HOUR)],
)
def test_what_has_expired_is_due(outcome, expires):
    record = ended_with(outcome)
    due = {at: Policy().is_due(record, START + at) for at in (-1, 0, expires - 1, expires)}
    assert due == {-1: True, 0: False, expires - 1: False, expires: True}  # -1: a clock set back
    assert Policy().is_due(None, START)


def retries(policy, statuses, *, jitter=0.0, **headers):
    """The delays to the next try after each of ``statuses``, tried when due."""
    record, now, delays = None, START, []
    for status in statuses:
        outcome = unreachable(now, status, **headers)
        record = policy.record_after(record, FILE, outcome, jitter=jitter)
        delays.append(record.next_try - now)
        assert not policy.is_due(record, record.next_try - 0.01)
        assert policy.is_due(record, record.next_try)
        now = record.next_try
    return delays


@pytest.mark.spec("F-7")
@pytest.mark.parametrize(
    ("status", "jitter", "headers", "delays"),
    [
        (500, 0.0, {}, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]),
        (503, 0.0, {}, [5, 10, 20, 40]),
        (500, 1.0, {}, [12.5, 25, 50, 100, 200, 400, 800, 1600, 3200, 3600, 3600]),
        (429, 0.0, {"retry_after": "120"}, [120]),
        (429, 0.0, {"retry_after": "0"}, [10]),
        (429, 0.0, {"retry_after": "3"}, [10]),
        (429, 0.0, {"retry_after": "86400"}, [3600]),
        (429, 0.0, {"retry_after": "soon"}, [10]),
    ],
)
def test_when_it_is_tried_again(status, jitter, headers, delays):
    assert retries(Policy(), [status] * len(delays), jitter=jitter, **headers) == delays


def test_after_an_answer_the_retries_begin_anew():
    failed = [unreachable(START), unreachable(START + 10)]
    record = ended_with(*failed)
    assert (record.tries, record.unreachable_since) == (2, START)
    record = ended_with(*failed, available(START + 40))
    assert (record.tries, record.unreachable_since, record.next_try) == (0, None, None)


def test_tries_without_end_do_not_overflow():
    assert ended_with(*[unreachable(START)] * 2_000, jitter=1.0).next_try == START + 3600


def test_what_would_fail_alike_in_this_process_is_not_tried_again():
    record = ended_with(replace(unreachable(START), of_origin=False, permanent=True))
    assert record.next_try is None
    for at in (START, START + 90 * DAY):
        assert not Policy().is_due(record, at)
        access = Policy().access(record, at)
        assert (reason_of(access), access.end) == (Reason.UNREACHABLE, math.inf)
        assert access.verdict.outage.next_try == math.inf


def test_what_did_not_come_to_the_origin_opens_nothing_and_does_not_count():
    policy = Policy(unreachable_stale_after=0.0)
    on_route = [
        Unreachable(Evidence(START + n * DAY, URL, error="proxy"), of_origin=False)
        for n in range(70)
    ]
    for before in ([], [available(AT)], [unavailable(AT)], [unreachable(AT)]):
        first = record = ended_with(*before, policy=policy)
        for tries, outcome in enumerate(on_route, 1 + (before == [unreachable(AT)])):
            record = policy.record_after(record, FILE, outcome, jitter=0.0)
            assert (record.unreachable_for, record.tries, record.of_origin) == (0.0, tries, False)
            assert record.copy == (None if first is None else first.copy)
        access = policy.access(record, record.next_try - 1)
        assert reason_of(access) is Reason.UNREACHABLE
        assert access.end == record.next_try == START + 69 * DAY + 3600
        # The gap before the next failure of the origin itself is none between two of its own.
        record = policy.record_after(record, FILE, unreachable(START + 70 * DAY), jitter=0.0)
        assert (record.unreachable_for, record.of_origin) == (0.0, True)


WEEK = 7 * DAY
steps = st.one_of(
    st.integers(0, int(HOUR)),
    st.integers(0, int(2 * DAY)),
    st.integers(-500 * 86_400, 500 * 86_400),
)


@pytest.mark.spec("F-8")
@given(st.lists(steps, max_size=60), steps, st.booleans())
def test_nothing_opens_before_its_time_has_been_counted(gaps, later, has_copy):
    """The clock jumps both ways; each gap counts with 0 to 7 days."""
    policy = Policy(unreachable_stale_after=20 * DAY, unreachable_allow_after=30 * DAY)
    at, counted = START, 0
    record = policy.record_after(None, FILE, available(at), jitter=0.0) if has_copy else None
    record = policy.record_after(record, FILE, unreachable(at), jitter=0.0)
    for gap in gaps:
        at, counted = at + gap, counted + min(max(gap, 0), WEEK)
        record = policy.record_after(record, FILE, unreachable(at), jitter=0.0)
        assert record.unreachable_for == counted
    opened = counted + min(later, WEEK) >= (20 if has_copy else 30) * DAY
    access = policy.access(record, at + later)
    assert (reason_of(access) is not Reason.UNREACHABLE) == opened
    if not opened and later >= 0 and not policy.is_due(record, at + later):
        assert access.end > at + later


@pytest.mark.parametrize(
    ("began", "later", "headers", "due"),
    [
        (HOUR, HOUR, {}, True),
        # This crawl, or another since, has tried already.
        (-HOUR, HOUR, {}, False),
        (0.0, HOUR, {}, False),
        # Somebody tried just now.
        (1.0, MINUTE, {}, False),
        # The site has said when.
        (HOUR, HOUR, {"retry_after": "7200"}, False),
        (HOUR, HOUR, {"retry_after": "soon"}, True),
    ],
)
def test_a_crawl_tries_once_what_was_unreachable_before_it_began(began, later, headers, due):
    policy = Policy(retry_delay=2 * MINUTE, retry_delay_max=DAY)
    # The next try is hours off.
    record = ended_with(*[unreachable(START, **headers)] * 12, policy=policy)
    assert not policy.is_due(record, START + later)
    assert not Policy().is_due(ended_with(available(START)), START + later, START + began)
    assert policy.is_due(record, START + later, START + began) is due
