"""Heads of answers of any bytes, for robots.txt and for pages."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Response

from scrapy_rep.fetch.errors import DecodingError
from scrapy_rep.fetch.is_from_origin import route_failure_in_answer
from scrapy_rep.fetch.redirects import Chain, location_of
from scrapy_rep.fetch.transfer import Transfer, answer_of
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import outcome_of
from scrapy_rep.protocol.record import Record

START = "http://site.example/robots.txt"
SITE_FILE = origin_of("http://site.example")
PARTS = [
    "max-age", "no-cache", "noindex", "nofollow", "none", "robots", "unavailable_after", "Fri", "25", "06", "Jun",
    "2010", "10", "0", "99", "9" * 11, "9" * 400, "15:00:00", "00:60:61", "24:00", "-0800", "+9999", "-99999999",
    "GMT", "EST", "UTC", "Z", "T", "\xb2", "\xa0", "\x85", "\x00", "\t", " ", " ", ",", ", ", ":", ";", "=", '"',
    "(", ")", "\\", "-", "/", ".", "+",
]  # fmt: skip
VALUES = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=20).map("".join),
    st.text(st.characters(max_codepoint=255), max_size=60),
)
NAMES = ["Age", "Cache-Control", "Content-Encoding", "Content-Type", "Location", "Proxy-Status",
         "Retry-After", "Set-Cookie", "Via", "X-Robots-Tag", "Zyte-Error"]  # fmt: skip
LOCATIONS = ["http://[bad", "//", "http://a:b/", "?", "/\xff", "http://1.2.3.4.5/", "ftp://a/",
             "\\"]  # fmt: skip
headers = st.dictionaries(
    st.sampled_from(NAMES),
    st.lists(st.one_of(VALUES, st.sampled_from(LOCATIONS)), min_size=1, max_size=3),
)


@given(
    st.one_of(st.integers(100, 999), st.integers()),
    headers,
    st.binary(max_size=50),
    st.sampled_from([None, "http://proxy.example/", "http://[proxy"]),
    st.sampled_from([None, "http://api.example/?url=1"]),
)
def test_any_head_has_an_outcome_that_can_be_stored(status, headers, body, proxy, sent_url):
    raw = {name: [each.encode("latin-1") for each in several] for name, several in headers.items()}
    response = Response(sent_url or START, status=status, headers=raw, body=body)
    route = {"proxy": proxy, "rewritten": sent_url}
    transfer = Transfer(same_origin=True, url=START, sent=True, **route)
    with suppress(DecodingError):
        answer = answer_of(response, transfer)
        failure = route_failure_in_answer(answer)
        assert failure is None or str(failure).isprintable()
        location = location_of(answer, START)
        assert location is None or location.startswith(("http://", "https://"))
        outcome = outcome_of(Chain(SITE_FILE, 0.0).evidence(answer), answer.text)
        record = Policy().record_after(None, SITE_FILE, outcome, jitter=0.5)
        state, body = record.encode()
        assert Record.decode(state, body or b"", str(record.origin)) == record
