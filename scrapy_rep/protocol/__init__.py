"""The Robots Exclusion Protocol: bytes, str and numbers in, values out.

No Scrapy, no clock, no I/O: this package serves anyone.
"""

from scrapy_rep.protocol.matching.ruleset import RuleSet
from scrapy_rep.protocol.origin import Origin, origin_of, target_of
from scrapy_rep.protocol.outage import Outage
from scrapy_rep.protocol.parser import Field, Group, RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict

__all__ = [
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
