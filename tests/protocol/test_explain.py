"""Which group holds, and which rules of it match."""

import pytest

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.origin import target_of

BODY = b"""\
User-agent: *
Disallow: /

User-agent: mybot
Disallow: /shop
Allow: /shop/open
Disallow: /*.php$
Crawl-delay: 2

User-agent: mybot/2
Allow: /shop/open*
Allow: /index.html
"""


def explain(body, target, *tokens):
    return RobotsTxt.parse(body).explain(target, *tokens)


def lines(explanation):
    return [rule.line for rule in explanation.matching]


@pytest.mark.spec("T-2")
def test_all_rules_that_match_the_longest_first():
    explanation = explain(BODY, "/shop/open/a.php", "mybot-images", "mybot")
    assert explanation.token == "mybot"
    assert lines(explanation) == [11, 6, 7, 5]
    assert explanation.verdict.line == 11
    assert explanation.group.tokens == ("mybot",)
    assert [field.name for field in explanation.group.fields] == ["crawl-delay"]


@pytest.mark.spec("T-2")
@pytest.mark.parametrize(
    ("body", "tokens", "token", "matching"),
    [
        (BODY, ("otherbot",), "*", [2]),
        (BODY, ("otherbot", "MyBot"), "MyBot", []),
        (b"User-agent: a\nDisallow: /", ("b",), None, []),
        (b"User-agent: *\nUser-agent: b\nDisallow: /", ("a", "b"), "b", [3]),
        (b"", ("a",), None, []),
    ],
)
def test_which_token_has_the_group_that_holds(body, tokens, token, matching):
    explanation = explain(body, "/x", *tokens)
    assert explanation.token == token
    assert lines(explanation) == matching
    assert (explanation.group is None) == (token is None)


@pytest.mark.rfc9309("2.2.2")
def test_rules_with_escapes_that_match_in_a_query_are_as_written():
    body = b"User-agent: *\nDisallow: /*%2fb\nAllow: /a?u=%2F\nDisallow: /*%3A\n"
    explanation = explain(body, target_of("https://a.example/a?u=%2Fb"), "mybot")
    assert [str(rule) for rule in explanation.matching] == ["Allow: /a?u=%2F", "Disallow: /*%2fb"]
    assert lines(explanation) == [3, 2]
    assert explanation.verdict.line == 3
