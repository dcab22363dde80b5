"""The form of a record in a store: what was written is read, anything else is refused."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.protocol.record import VERSION, Record, RecordError, max_encoded_size

ORIGIN = "https://example.com"
FILE = origin_of(ORIGIN)
URL = f"{ORIGIN}/robots.txt"
SEEN = Evidence(
    1.5, URL, 200, ("https://a/", "https://b/"), 3, truncated=True, cache_control="max-age=5"
)


def read(data, origin=ORIGIN, max_size=1000):
    return Record.decode(data, origin, max_size=max_size)


copy = Available(b"Disallow: /\n", SEEN)
RECORDS = [
    Record(FILE, copy, copy),
    Record(FILE, Available(b"", Evidence(0.0, URL, 204)), Available(b"", Evidence(0.0, URL, 204))),
    Record(FILE, Unavailable(Evidence(1.0, URL, 404))),
    Record(FILE, Unreachable(Evidence(9.0, URL, error="boom")), copy, 3.0, 6.0, 2, 20.0),
    Record(
        FILE, Unreachable(Evidence(9.0, URL, 503, retry_after="5", age="1")), None, 3.0, 0.0, 1, 9.5
    ),
]


@pytest.mark.parametrize("record", RECORDS)
def test_what_was_written_is_read(record):
    again = read(record.encode())
    assert again == record
    assert (again.last is again.copy) == isinstance(record.last, Available)


def packed(head, body=b""):
    text = len(head).to_bytes(4, "big") + head + body
    return bytes([VERSION]) + zlib.compress(text)


def parts_of(record):
    text = zlib.decompress(record.encode()[1:])
    end = 4 + int.from_bytes(text[:4], "big")
    return text[4:end], text[end:]


def altered(record, **changes):
    head, body = parts_of(record)
    header = json.loads(head)
    for path, value in changes.items():
        part = header
        *names, name = path.split("__")
        for step in names:
            part = part[step]
        if value is KeyError:
            del part[name]
        else:
            part[name] = value
    return packed(json.dumps(header).encode(), body)


DAMAGED = [
    b"",
    bytes([VERSION]),
    bytes([VERSION - 1]) + RECORDS[0].encode()[1:],
    RECORDS[0].encode()[:40],
    RECORDS[0].encode()[:-3],
    RECORDS[0].encode() + b"x",
    RECORDS[0].encode() + RECORDS[0].encode(),
    bytes([VERSION]) + zlib.compress(b"\xff\xff\xff\xff"),
    bytes([VERSION]) + zlib.compress(b"\x00"),
    packed(b"[]"),
    packed(b"null"),
    altered(RECORDS[0], origin="https://other.example"),
    altered(RECORDS[0], last__kind="other"),
    altered(RECORDS[0], last__kind="unreachable"),
    altered(RECORDS[0], last__at=KeyError),
    altered(RECORDS[0], last__at=10**400),
    altered(RECORDS[3], copy__extra=1),
    altered(RECORDS[3], copy__url=KeyError),
    altered(RECORDS[3], copy__hops="x"),
    altered(RECORDS[3], copy__hops=[1]),
    altered(RECORDS[3], copy__status="200"),
    altered(RECORDS[3], copy__truncated=1),
    altered(RECORDS[3], copy__at=None),
    altered(RECORDS[3], copy__at=True),
    altered(RECORDS[3], copy__at=float("nan")),
    altered(RECORDS[0], tries=-1),
    altered(RECORDS[0], tries=1.5),
    altered(RECORDS[0], tries=KeyError),
    altered(RECORDS[3], unreachable_since=None),
    altered(RECORDS[3], unreachable_for=None),
    altered(RECORDS[3], unreachable_for=-1.0),
    altered(RECORDS[3], unreachable_for=True),
    altered(RECORDS[3], unreachable_for=float("nan")),
    altered(RECORDS[3], unreachable_for=KeyError),
    altered(RECORDS[3], next_try=None),
    altered(RECORDS[3], next_try=float("inf")),
    altered(RECORDS[3], unreachable_since="3"),
    altered(RECORDS[2], unreachable_since=3.0),
]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_record_is_refused(data):
    with pytest.raises(RecordError):
        read(data)


def test_what_is_not_the_origins_own_answer_is_not_stored():
    record = Record(FILE, Unreachable(SEEN, of_origin=False), None, 3.0, 0.0, 1, 9.5)
    with pytest.raises(ValueError, match="not stored"):
        record.encode()


def test_a_body_larger_than_what_counts_is_refused():
    body = b"x" * 1001
    record = Record(FILE, Available(body, SEEN), Available(body, SEEN))
    with pytest.raises(RecordError, match="too large"):
        read(record.encode())


@given(st.binary(max_size=50_000))
def test_no_record_is_encoded_to_more_than_the_limit(body):
    record = Record(FILE, Available(body, SEEN), Available(body, SEEN))
    assert len(record.encode()) <= max_encoded_size(len(body))


@pytest.mark.parametrize(
    ("excess", "error"), [(0, "followed by other data"), (1, "above the limit")]
)
def test_more_than_the_limit_is_not_inflated(excess, error):
    encoded = RECORDS[0].encode()
    behind = b"\0" * (max_encoded_size(1000) - len(encoded) + excess)
    with pytest.raises(RecordError, match=error):
        read(encoded + behind)


def test_a_bomb_in_the_store_is_refused():
    head, _ = parts_of(RECORDS[0])
    with pytest.raises(RecordError, match="too large"):
        read(packed(head, b"\0" * 10_000_000))
