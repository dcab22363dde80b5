"""The Robots Exclusion Protocol: bytes, str and numbers in, values out.

No Scrapy, no clock, no I/O: this package serves anyone.
"""

from scrapy_rep.protocol.matcher import Rule, RuleSet
from scrapy_rep.protocol.origin import Origin, origin_of, target_of
from scrapy_rep.protocol.parser import Group, Record, RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict

__all__ = [
    "Group",
    "Origin",
    "Reason",
    "Record",
    "RobotsTxt",
    "Rule",
    "RuleSet",
    "Verdict",
    "origin_of",
    "target_of",
]
