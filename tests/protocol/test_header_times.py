"""From headers to times: SPEC F-11, RFC 9309 §2.4, RFC 9111, RFC 9110 §10.2.3."""

import pytest

from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.header_times import retry_after
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Evidence, Unavailable
from scrapy_rep.protocol.record import Record

DAY = 86_400.0


def fresh(cache_control, age=None, **policy):
    evidence = Evidence(0.0, "", 404, cache_control=cache_control, age=age)
    record = Record(origin_of("http://a.example"), Unavailable(evidence))
    return Policy(**policy).access(record, 0.0).end


@pytest.mark.spec("F-11")
@pytest.mark.parametrize(
    ("cache_control", "age", "seconds"),
    [
        (None, None, DAY),
        ("", None, DAY),
        ("max-age=3600", None, 3600),
        ('public, max-age="3600"', None, 3600),
        ("max-age=3600, max-age=7200", None, 3600),
        ("max-age=0", None, 600),
        ("max-age=99999999999999999999999", None, DAY),
        ("max-age=-1", None, 600),
        ("max-age", None, DAY),
        ("no-cache", None, 600),
        ("no-store, max-age=3600", None, 600),
        ("max-age=36000", "30000", 6000),
        ("max-age=3600", "99999", 600),
        (None, "80000", DAY),
        ("max-age=٣", None, 600),
    ],
)
def test_max_age_lengthens_or_shortens(cache_control, age, seconds):
    assert fresh(cache_control, age) == seconds


@pytest.mark.spec("F-11")
def test_no_answer_lives_longer_than_the_longest_life():
    assert fresh(None, cache_ttl=7 * DAY) == DAY


NOW = 1_900_000_000.0  # Sun, 17 Mar 2030 17:46:40 GMT


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("-5", None),
        ("1.5", None),
        ("Sun, 17 Mar 2030 17:47:40 GMT", 60.0),
        ("Sun, 17 Mar 2030 17:47:40 -0000", 60.0),
        ("Sun, 17 Mar 2020 17:47:40 GMT", 0.0),
        ("Sun, 99 Mar 2030 17:47:40 GMT", None),
        ("99999999999999999", 2.0**31),
    ],
)
def test_rfc9110_retry_after_in_seconds_or_as_a_date(value, seconds):
    assert retry_after(value, NOW) == seconds
