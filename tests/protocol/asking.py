"""Verdicts that are the same without and with an index of the rules, and as the reference has them."""

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.lexer import lex
from tests.protocol import reference

TIMES = 6
"""More verdicts than a group gives without an index."""


def verdict(body, url, *tokens):
    """Return the verdict of a file on a URL, which is the same however often it is asked."""
    robots = RobotsTxt.parse(body)
    first, *others = [robots.verdict(url, *tokens) for _ in range(TIMES)]
    assert others == [first] * (TIMES - 1)
    return first


def agreed(body, path, tokens=()):
    """Return the verdict on a path, which the reference has, too."""
    found = verdict(body, f"http://h{path}", *tokens)
    octets = found.rule and len(found.rule.pattern)
    assert (found.allowed, octets) == reference.verdict(body, path, tokens), (body, path, tokens)
    return found


def check_lines(body):
    """See that the lines of a file that say something are those that the reference finds."""
    lines = [(number, kind.value, value) for number, kind, _, value, _ in lex(body)]
    said = [line for line in lines if line[1] not in {"empty", "invalid"}]
    assert said == [(n, k, v.encode("latin-1")) for n, k, v in reference.lines_of(body)], body
