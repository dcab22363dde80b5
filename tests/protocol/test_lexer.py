"""Whether a body is a robots.txt at all; its lines are in the conformance cases."""

import pytest

from scrapy_rep.protocol.lexer import has_known_line, is_robotstxt


@pytest.mark.parametrize(
    ("body", "known", "robots"),
    [
        (b"User-agent: *", True, True),
        (b"\r\n crawl-delay : 3", True, True),
        (b"Sitemap: https://example.com/s.xml", True, True),
        (b" \n# only a comment\n", False, True),
        (b"", False, True),
        (b"<html>no such page</html>", False, False),
        (b"out of credits", False, False),
    ],
)
def test_what_a_body_is_taken_for(body, known, robots):
    assert (has_known_line(body), is_robotstxt(body)) == (known, robots)
