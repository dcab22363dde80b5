"""The conformance cases, without and with an index of the rules."""

import pytest

from scrapy_rep.protocol import RobotsTxt
from tests.conformance import results
from tests.conformance.adapters.with_scrapy_rep import more
from tests.conformance.running import body_of, judge
from tests.protocol import asking

CASES = results.read_cases()
CLAUSES = sorted({case["clause"] for case in CASES})


def answer(case):
    body, url, tokens = body_of(case), case["url"], case["tokens"]
    verdict = asking.verdict(body, url, *tokens)
    return more(RobotsTxt.parse(body), tokens, url) | {
        "allowed": verdict.allowed,
        "line": verdict.line,
    }


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_cases_of_a_clause(clause):
    cases = [case for case in CASES if case["clause"] == clause]
    judged = {case["id"]: judge(case, answer(case)) for case in cases}
    assert {name: each for name, each in judged.items() if False in each} == {}
