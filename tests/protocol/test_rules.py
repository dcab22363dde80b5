"""Matching: SPEC M, RFC 9309 §2.2.2."""

import pytest

from scrapy_rep.protocol import Reason, RobotsTxt, Rule, Verdict, origin_of
from scrapy_rep.protocol.origin import target_of
from tests.protocol import asking


def verdict(rules, path):
    if not path.startswith("http"):
        path = f"https://example.com{path}"
    return asking.verdict(f"user-agent: *\n{rules}".encode(), path, "a")


def matches(pattern, path):
    return not verdict(f"disallow: {pattern}", path).allowed


@pytest.mark.spec("M-1", "M-2")
@pytest.mark.rfc9309("2.2.2", "2.2.3")
@pytest.mark.parametrize(
    ("pattern", "path", "matching"),
    [
        # In a query, an escape of data is its character.
        ("/*%2Fb*c*%2Fd", "/%2Fbc?/d", True),
        ("/*%2F?a=%2F", "/b?/?a=/", True),
        ("/a%2Fb*%2F", "/a%2Fb?%2F", True),
        # Elsewhere it is not.
        ("*%2Fb$", "/a?u=/bc", False),
        ("/a?b=%26%3D%2B%25", "/a?b=&=+%", False),
        # A rule with a % that begins no escape matches what it matches as both are written.
        ("*?%", "/?%2Fx", True),
        ("/*URL%*", "/a?URL%3Ab", True),
        ("/g/*/%*", "/g/a/%61", True),
        ("/%4", "/%41", True),
        ("/%4$", "/%41", False),
        ("/é%", "/%C3%A9%41", True),
        ("/é%", "/é%41", True),
        ("/$b%4", "/$b%41", True),
        ("/*%6*%2f$", "/%61%2f", True),
        ("/*%6*%2f$", "/%61%2F", False),
        # As both are written, an escape in a query is not its character.
        ("*%3F%b*", "/%2f/??%ba", False),
        ("/*%2F*%6", "/?/%61", False),
        # Only its own % counts.
        ("/*41", "/%41", False),
    ],
)
def test_spellings_and_operators(pattern, path, matching):
    assert matches(pattern, path) is matching


@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize("path", ["/a%2F%2Fb", "/?%2F%2Fb", "/?//b", "/?%2f/b"])
def test_a_rule_has_the_same_length_in_path_and_query(path):
    assert not verdict("disallow: /*%2F%2Fb\nallow: /*b*", path).allowed
    assert not verdict("disallow: /*%2F%2Fb\nallow: *******b", path).allowed
    assert verdict("disallow: /*%2F%2Fb\nallow: *********b", path).allowed
    found = verdict("allow: /*%2F%2Fb\ndisallow: /*b", path)
    assert (found.allowed, str(found.rule), found.line) == (True, "Allow: /*%2F%2Fb", 2)


@pytest.mark.spec("M-2")
def test_a_rule_that_matches_as_written_has_its_length_and_may_allow():
    rules = "disallow: /*u=\nallow: /*u=%\nallow: /*?%"
    found = verdict(rules, "/a?u=%2Fb")
    assert (found.allowed, found.rule.pattern, found.line) == (True, "/*u=%", 3)
    assert not verdict(rules, "/a?u=/b").allowed
    assert not verdict("disallow: /*u=%%%2F\nallow: /*u=%%", "/?u=%%%2F").allowed


def test_verdict_names_rule_and_line():
    found = verdict("disallow: /é*", "/%C3%A9")
    assert found.rule == Rule(allow=False, pattern="/%C3%A9*", raw="/é*", line=2)
    assert str(found.rule) == "Disallow: /é*"
    assert found.reason is Reason.RULE
    assert verdict("allow: /b", "/a") == Verdict(True, Reason.NO_RULE)
    assert str(verdict("allow: /\x1b[0m", "http://h/\x1b[0m").rule) == "Allow: /%1B[0m"


def test_rules_know_their_size():
    body = b"user-agent: *\n" + b"".join(
        b"disallow: /%d*x\ndisallow: /%d$\n" % (i, i) for i in range(99)
    )
    rules = RobotsTxt.parse(body).rules_for("a")
    assert RobotsTxt.parse(b"").rules_for("a").nbytes < 2_000 < rules.nbytes < 100_000
    assert {rules.verdict_for(target_of("http://h/5x")).line for _ in range(2)} == {12}
    assert origin_of("http://h/").robotstxt_url == "http://h/robots.txt"
