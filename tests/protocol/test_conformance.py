"""The conformance cases, without and with an index of the rules."""

import pytest

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in
from tests.conformance import results
from tests.conformance.clauses import CLAUSES
from tests.conformance.running import judge
from tests.conformance.writing import body_of
from tests.protocol import asking

CASES = results.read_cases()
WORDS = {
    "content_usage": {"allow": "y", "disallow": "n"},
    "content_signal": {"allow": "yes", "disallow": "no"},
}


def answer(case):
    body, url, tokens = body_of(case), case["url"], case["tokens"]
    robots = RobotsTxt.parse(body)
    verdict = asking.verdict(body, url, *tokens)
    delay = delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS))
    found = {"allowed": verdict.allowed, "line": verdict.line, "sitemaps": robots.sitemaps}
    found["crawl_delay"] = delay and delay.seconds
    statements = robots.usage(url, *tokens).statements
    for source, words in WORDS.items():
        of_source = [each for each in statements if each.source == source.replace("_", "-")]
        said = {each.label: words.get(each.value) for each in of_source}
        found[source] = {label: value for label, value in said.items() if value}
    return found


@pytest.mark.parametrize("clause", CLAUSES)
def test_the_cases_of_a_clause(clause):
    cases = [case for case in CASES if case["clause"] == clause]
    judged = {case["id"]: judge(case, answer(case)) for case in cases}
    assert {name: each for name, each in judged.items() if False in each} == {}
