"""Verdicts that are the same without and with an index of the rules."""

from scrapy_rep.protocol import RobotsTxt

TIMES = 6
"""More verdicts than a group gives without an index."""


def verdict(body, url, *tokens, **options):
    """Return the verdict of a file on a URL, which is the same however often it is asked."""
    robots = RobotsTxt.parse(body, **options)
    first, *others = [robots.verdict(url, *tokens) for _ in range(TIMES)]
    assert others == [first] * (TIMES - 1)
    return first
