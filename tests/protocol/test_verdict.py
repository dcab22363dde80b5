"""Verdicts: the origin's robots.txt, and plain values."""

import json

from scrapy_rep.protocol import Outage, Reason, Rule, Verdict, origin_of

ORIGIN = origin_of("https://example.com/a")
URL = "https://example.com/robots.txt"
RULE = Verdict(False, Reason.RULE, Rule(False, "/a", "/a", 3))


def test_a_verdict_goes_through_json_as_plain_values():
    values = {"allowed": False, "reason": "rule", "rule": "Disallow: /a", "line": 3}
    values |= {"cause": None, "unreachable_since": None, "next_try": None}
    assert RULE.with_origin(ORIGIN).as_dict() == json.loads(
        json.dumps(values | {"robotstxt_url": URL})
    )
    assert Verdict(True, Reason.NO_RULE).with_origin(ORIGIN).as_dict()["rule"] is None
    override = Verdict(True, Reason.OVERRIDE)
    assert override.with_origin(ORIGIN) == override
    down = Verdict(False, Reason.UNREACHABLE, outage=Outage("status 503", 1.0, 6.0)).as_dict()
    told = down["cause"], down["unreachable_since"], down["next_try"]
    assert told == ("status 503", 1.0, 6.0)
