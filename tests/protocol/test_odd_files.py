"""Cases of what real files have beside plain rules; each table names its authority."""

import pytest

from scrapy_rep.protocol import RobotsTxt

ROWS = [
    # RFC 3986 §2: no URI has them as they are, so their escape is their only form.
    (b"/a\x01b", "/a%01b", True),
    (b"/a\tb", "/a%09b", True),
    (b"\t/a\t", "/a", True),
    (b"/a\x00b", "/a", True),  # ours: a NUL ends the content of a line
    (b"/a\xff", "/a%FF", True),
    (b"/\xe9", "/%E9", True),  # Latin-1 in the file, and in the URL
    (b"/\xe9", "/%C3%A9", False),
    (b"/\xf0\x9f\x98\x80", "/\U0001f600", True),
    (b"/\xed\xa0\x80", "/%ED%A0%80", True),  # half of a pair: no UTF-8, but octets
]
FILES = [
    # RFC 9309 §2.2: lines that are no records are skipped, wherever they come from.
    (b"<html><body>Not found</body></html>", "/", True),
    (b"<pre>\nUser-agent: *\nDisallow: /\n</pre>", "/a", False),
    (b"<pre>User-agent: *\nDisallow: /</pre>", "/a", True),  # no group before the rule
    (b"<html>\r\nUser-agent: *<br>\r\nDisallow: /a<br>\r\n", "/a<br>", True),  # *<br> is nobody
    (b"&lt;\nUser-agent: *\nDisallow: /a&amp;b", "/a&amp;b", False),
    (b"User-agent: *\n<b>Disallow: /</b>\nDisallow: /a", "/a", False),
    (b'{"error": "not found"}', "/", True),
    (b"\x1f\x8b\x08\x00binary\xff\n\nUser-agent:*\nDisallow:/a", "/a", False),
]


def is_allowed(body, path):
    return RobotsTxt.parse(body).verdict(f"https://example.com{path}", "a").allowed


@pytest.mark.google
@pytest.mark.rfc9309("2.2")
@pytest.mark.rfc3986("2")
@pytest.mark.parametrize(("value", "path", "matches"), ROWS)
def test_what_a_value_matches(value, path, matches):
    octets = value if isinstance(value, bytes) else value.encode()
    assert is_allowed(b"user-agent: *\ndisallow: " + octets, path) is not matches


@pytest.mark.rfc9309("2.3.1.1")
@pytest.mark.parametrize(("body", "path", "allowed"), FILES)
def test_what_is_no_robots_txt_is_read_as_far_as_it_is_one(body, path, allowed):
    assert is_allowed(body, path) is allowed
