"""The form of a record in a store: what was written is read, anything else is refused."""

import json
import zlib
from dataclasses import replace
from random import Random

import pytest

from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unavailable, Unreachable
from scrapy_rep.protocol.record import MAX_ENCODED_SIZE, VERSION, Record, RecordError

ORIGIN = "https://example.com"
FILE = origin_of(ORIGIN)
URL = f"{ORIGIN}/robots.txt"
SEEN = Evidence(
    1.5, URL, 200, ("https://a/", "https://b/"), 3, truncated=True, cache_control="max-age=5"
)


def read(state, body, origin=ORIGIN):
    return Record.decode(state, body or b"", origin)


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
    state, body = record.encode()
    if body is None and record.copy is not None:  # what was stored before stays
        body = RECORDS[0].encode()[1]
    again = read(state, body)
    assert again == record
    assert (again.last is again.copy) == isinstance(record.last, Available)


def test_an_unavailable_file_has_no_copy_and_an_available_one_its_own():
    later = Record(FILE, Available(b"", Evidence(9.0, URL)), Available(b"", Evidence(9.0, URL)))
    assert read(RECORDS[2].encode()[0], RECORDS[0].encode()[1]) == RECORDS[2]
    for state, body in ((RECORDS[0], later), (later, RECORDS[0]), (RECORDS[0], RECORDS[2])):
        with pytest.raises(RecordError, match="without its text"):
            read(state.encode()[0], body.encode()[1])


STATE, BODY = RECORDS[0].encode()
DOWN = RECORDS[3].encode()[0]


def packed(head, body=b""):
    return bytes([VERSION]) + zlib.compress(len(head).to_bytes(4, "big") + head + body)


def changed(text, changes):
    """A JSON object with other values; names of parts of parts are joined by two underlines."""
    header = json.loads(text)
    for path, value in changes.items():
        part = header
        *names, name = path.split("__")
        for step in names:
            part = part[step]
        if value is KeyError:
            del part[name]
        else:
            part[name] = value
    return json.dumps(header).encode()


def state(record, **changes):
    return bytes([VERSION]) + changed(record.encode()[0][1:], changes), BODY


def copied(**changes):
    inflated = zlib.decompress(BODY[1:])
    end = 4 + int.from_bytes(inflated[:4], "big")
    return DOWN, packed(changed(inflated[4:end], changes), inflated[end:])


DAMAGED = [
    (b"", b""),
    (bytes([VERSION - 1]) + STATE[1:], BODY),
    (STATE, bytes([VERSION - 1]) + BODY[1:]),
    (STATE, BODY[:-3]),
    (STATE + b"x", BODY),
    (STATE, BODY + b"x"),
    (STATE, bytes([VERSION]) + zlib.compress(b"\xff\xff\xff\xff")),
    (bytes([VERSION]) + b"[]", BODY),
    (STATE, packed(b"null")),
    state(RECORDS[0], origin="https://other.example"),
    state(RECORDS[0], last__kind="unreachable"),
    state(RECORDS[0], last__at=KeyError),
    state(RECORDS[0], last__at=10**400),
    copied(extra=1),
    copied(url=KeyError),
    copied(hops=[1]),
    copied(status="200"),
    copied(truncated=1),
    copied(at=None),
    copied(at=float("nan")),
    state(RECORDS[0], tries=-1),
    state(RECORDS[3], unreachable_since=None),
    state(RECORDS[3], unreachable_for=-1.0),
    state(RECORDS[3], unreachable_for=float("nan")),
    state(RECORDS[3], next_try=float("inf")),
    state(RECORDS[2], unreachable_since=3.0),
]


@pytest.mark.parametrize("data", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_record_is_refused(data):
    with pytest.raises(RecordError):
        read(*data)


def test_what_is_not_the_origins_own_answer_is_not_stored():
    record = Record(FILE, Unreachable(SEEN, of_origin=False), None, 3.0, 0.0, 1, 9.5)
    with pytest.raises(ValueError, match="not stored"):
        record.encode()


def test_a_body_larger_than_what_counts_is_refused():
    body = b"x" * (MAX_BODY_BYTES + 1)
    record = Record(FILE, Available(body, SEEN), Available(body, SEEN))
    with pytest.raises(RecordError, match="too large"):
        read(*record.encode())


@pytest.mark.parametrize(("excess", "is_read"), [(0, True), (1, False)])
def test_a_header_larger_than_what_is_written_is_refused(excess, is_read):
    head = zlib.decompress(BODY[1:])[4:].partition(b"}")[0] + b"}"
    body = packed(head.ljust(262_144 + excess), b"x" * MAX_BODY_BYTES)
    if is_read:
        assert len(read(DOWN, body).copy.body) == MAX_BODY_BYTES
    else:
        with pytest.raises(RecordError, match="too large"):
            read(DOWN, body)


def test_no_record_is_encoded_to_more_than_the_limit():
    seen = replace(SEEN, error="".join(map(chr, Random(1).choices(range(32, 127), k=250_000))))
    body = Available(Random(2).randbytes(MAX_BODY_BYTES), seen)
    assert len(Record(FILE, body, body).encode()[1]) <= MAX_ENCODED_SIZE
    assert read(*Record(FILE, replace(body, evidence=SEEN), None).encode()).last.body == body.body


@pytest.mark.parametrize(
    ("excess", "error"), [(0, "followed by other data"), (1, "above the limit")]
)
def test_more_than_the_limit_is_not_inflated(excess, error):
    behind = b"\0" * (MAX_ENCODED_SIZE - len(BODY) + excess)
    with pytest.raises(RecordError, match=error):
        read(STATE, BODY + behind)


def test_a_bomb_in_the_store_is_refused():
    with pytest.raises(RecordError, match="too large"):
        read(STATE, packed(b"{}", b"\0" * 10_000_000))
