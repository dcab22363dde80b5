"""Lines: SPEC L, and Google's parser where the standard is silent."""

import pytest

from scrapy_rep.protocol.lexer import LineKind, Oddity, has_known_line, is_robotstxt, lex


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


def test_nul_ends_the_content():
    lines = list(lex(b"disallow: /x\0y\nallow: /z\0\n\0allow: /"))
    assert [(line.kind, line.value) for line in lines] == [
        (LineKind.DISALLOW, b"/x"),
        (LineKind.ALLOW, b"/z"),
        (LineKind.EMPTY, b""),
    ]
    assert all(line.oddity is Oddity.NUL for line in lines)


@pytest.mark.google
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_is_cut_at_16663_bytes_and_ends_at_its_own_end(end):
    path = b"/" + b"x" * 20_000
    lines = list(lex(b"disallow: " + path + end + b"allow: /y"))
    assert lines[0].value == path[: 16_663 - len("disallow: ")]
    assert lines[0].oddity is Oddity.CUT
    assert (lines[1].number, lines[1].value) == (2, b"/y")
    (whole,) = lex((b"disallow: " + path)[:16_663])
    assert (whole.oddity, whole.value) == (Oddity.NONE, lines[0].value)


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
