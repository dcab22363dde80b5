"""Content codings, undone to a bound."""

import gzip
import zlib

import pytest

from scrapy_rep.fetch.decoding import decode
from scrapy_rep.fetch.errors import DecodingError
from tests.crawling.web import raw_deflate

TEXT = b"User-agent: *\nDisallow: /private\n" * 100
ENDLESS = b"\0" * 20_000_000


CODINGS = [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)]


@pytest.mark.parametrize(("coding", "pack"), CODINGS)
def test_each_coding(coding, pack):
    assert decode(pack(TEXT), [coding], 100_000, complete=True) == TEXT
    assert decode(pack(TEXT), [f" {coding.upper()} "], 100_000, complete=True) == TEXT
    for complete in (True, False):
        assert decode(pack(ENDLESS), [coding], 1_000, complete=complete) == b"\0" * 1_000
    packed = pack(bytes(range(256)) * 20)
    with pytest.raises(DecodingError):
        decode(packed[:-3], [coding], 100_000, complete=True)
    assert isinstance(decode(packed[:-3], [coding], 100_000, complete=False), bytes)


def test_too_many_codings():
    assert decode(TEXT, ["identity"] * 5, 10, complete=True) == TEXT[:10]
    with pytest.raises(DecodingError, match="6 content codings"):
        decode(TEXT, ["identity"] * 6, 10, complete=True)


def test_a_bomb_within_a_bomb():
    packed = gzip.compress(gzip.compress(ENDLESS))
    assert decode(packed, ["gzip", "gzip"], 1_000, complete=True) == b"\0" * 1_000
    # One that is cut before its inner coding ends.
    packed = gzip.compress(b"\x1f\x8b" + b"x" * 5_000)
    with pytest.raises(DecodingError):
        decode(packed, ["gzip", "gzip"], 1_000, complete=True)


def test_members_of_gzip():
    assert decode(gzip.compress(b"a") * 64, ["gzip"], 1_000, complete=True) == b"a" * 64
    assert decode(gzip.compress(b"a") + b"\0\0pad", ["gzip"], 9, complete=True) == b"a"
    with pytest.raises(DecodingError, match="members"):
        decode(gzip.compress(b"") * 65, ["gzip"], 1_000, complete=True)
