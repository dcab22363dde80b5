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
from scrapy_rep.protocol.usage.statement import (
    ANY,
    DISALLOW,
    LICENSE,
    MEANINGS,
    PURPOSES,
    REVISIONS,
    Statement,
    Value,
)
from scrapy_rep.protocol.usage.usage import HEADERS, Judgement, Usage, judge

__all__ = [
    "ANY",
    "DISALLOW",
    "HEADERS",
    "LICENSE",
    "MEANINGS",
    "NO_USAGE_LINES",
    "PURPOSES",
    "REVISIONS",
    "USAGE_FIELDS",
    "Judgement",
    "Statement",
    "Usage",
    "UsageLines",
    "Value",
    "judge",
    "read",
    "usage_lines",
]
