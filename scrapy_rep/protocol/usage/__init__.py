"""Usage preferences: for which purposes a site allows the use of its pages, such as AI training.

``read`` returns what the usage lines of robots.txt say about a target, as a ``Usage``: its
statements, each of them one preference. Those of headers and meta elements are added to it.
``judge`` compares it with purposes. ``statement.py`` defines for which purposes a statement counts.
"""

from scrapy_rep.protocol.usage.lines import (
    NO_USAGE_LINES,
    USAGE_FIELDS,
    UsageLines,
    read,
    usage_lines,
)
from scrapy_rep.protocol.usage.statement import DISALLOW, LICENSE, PURPOSES, Statement
from scrapy_rep.protocol.usage.usage import HEADERS, Judgement, Usage, judge

__all__ = [
    "DISALLOW",
    "HEADERS",
    "LICENSE",
    "NO_USAGE_LINES",
    "PURPOSES",
    "USAGE_FIELDS",
    "Judgement",
    "Statement",
    "Usage",
    "UsageLines",
    "judge",
    "read",
    "usage_lines",
]
