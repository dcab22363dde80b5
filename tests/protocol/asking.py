"""Verdicts that are the same before and after rules are filed, and as the reference has them."""

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.lexer import lex
from tests.protocol import reference


def verdict(body, url, *tokens):
    """Return the verdict of a file on a URL, which is the same however often it is asked."""
    robots = RobotsTxt.parse(body)
    first = robots.verdict(url, *tokens)
    assert robots.verdict(url, *tokens) == first
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
