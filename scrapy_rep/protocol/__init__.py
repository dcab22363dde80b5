"""The Robots Exclusion Protocol: parses robots.txt, and decides which URLs may be fetched.

All input is bytes, strings and numbers. This package does not use Scrapy, a clock or I/O.
"""

from scrapy_rep.protocol.origin import Origin, origin_of, target_of
from scrapy_rep.protocol.parser import Explanation, Field, Group, RobotsTxt
from scrapy_rep.protocol.rules import RuleSet
from scrapy_rep.protocol.verdict import Outage, Reason, Rule, Verdict

__all__ = [
    "Explanation",
    "Field",
    "Group",
    "Origin",
    "Outage",
    "Reason",
    "RobotsTxt",
    "Rule",
    "RuleSet",
    "Verdict",
    "origin_of",
    "target_of",
]
