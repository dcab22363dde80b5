"""Lines: SPEC L, and Google's parser where the standard is silent."""

import pytest

from scrapy_rep.protocol.lexer import Oddity, has_known_line, is_robotstxt, lex


def read(body):
    return [(line.number, line.kind.value, line.value) for line in lex(body)]


ODD = {"misspelt": Oddity.MISSPELT, "no colon": Oddity.NO_COLON, "": Oddity.NONE}


@pytest.mark.spec("L-2", "L-3", "L-4", "L-5")
@pytest.mark.google
@pytest.mark.parametrize(
    ("line", "kind", "value", "odd"),
    [
        (b" \t Disallow \t : \t /x \t ", "disallow", b"/x", ""),
        (b"\x0b\x0cDisallow:\x0c/x\x0b", "disallow", b"/x", ""),
        (b"Disallow#: /x", "invalid", b"Disallow", ""),
        # Without a field.
        (b"nonsense", "invalid", b"nonsense", ""),
        # Without a colon.
        (b"user-agent foobot", "user-agent", b"foobot", "no colon"),
        (b"user-agent foo bot", "invalid", b"user-agent foo bot", ""),
        (b"disallow\x0b/x", "invalid", b"disallow\x0b/x", ""),
        (b"\xff\xfe: x", "other", b"x", ""),
        # Typing errors.
        (b"useragent: x", "user-agent", b"x", "misspelt"),
        (b"allowed: x", "allow", b"x", "misspelt"),
    ],
)
def test_a_line(line, kind, value, odd):
    assert read(line + b"\n") == [(1, kind, value)]
    assert [each.oddity for each in lex(line + b"\n")] == [ODD[odd]]


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
