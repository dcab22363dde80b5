"""What a linter says of a file, line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.lint import CODES, lint
from scrapy_rep.protocol.rules import RuleSet

GROUP = b"User-agent: *\n"


def codes(body):
    found = lint(body).findings
    assert all(finding.code in CODES and finding.text for finding in found)
    return [(finding.line, finding.code) for finding in found]


@pytest.mark.spec("T-2")
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", []),
        (b"# all\n\n" + GROUP + b"Disallow: /a # why\nAllow:\nSitemap: https://a.example/s\n", []),
        (b"\xef\xbb\xbf" + GROUP, [(None, "byte-order-mark")]),
        (b"\xef" + GROUP, [(None, "byte-order-mark")]),
        (b"\xef\xbb\xbf<html>", [(None, "byte-order-mark"), (None, "html"), (1, "skipped")]),
        (b" <!DOCTYPE html>", [(None, "html"), (1, "skipped")]),
        (b"Disallow: /", [(None, "no-group"), (1, "without-group")]),
        (b"Disallow: /\n" + GROUP, [(1, "without-group")]),
        (GROUP + b"Dissallow: /", [(2, "misspelt")]),
        (GROUP + b"Disallow /", [(2, "no-colon")]),
        (GROUP + b"Crawl-delay: 5\nHost: a\nVisit-Time: 0600-0845", []),
        (GROUP + b"Content-Usage: search=y\nContent-Signal: search=yes\nNoindex: /a\nHost: a", []),
        (GROUP + b"Clean-param: a /b\nNosnippet: /a", [(3, "unknown-field")]),
        (b"User-agent: * Disallow: /x", [(1, "several-fields")]),
        (GROUP + b"Disallow: /a Disallow: /b", [(2, "several-fields")]),
        (GROUP + b"Disallow: /a /b", [(2, "several-paths")]),
        (b"Crawl-delay: 5\nHost: a\nContent-Usage: search=y\n" + GROUP, [(1, "without-group"), (3, "without-group")]),
        (b"Content-Signal: search=yes\nLicense: https://a.example/l.xml\n" + GROUP, []),
        (GROUP + b"Crawl-delay: ten\nCrawl-delay: -5", [(n, "delay-not-taken") for n in (2, 3)]),
        (GROUP + b"Crawl-delay: 0\nCrawl-delay: 0.0\nRequest-rate: 1/5s", []),
        (GROUP + b"these are words", [(2, "skipped")]),
        (GROUP + b"Disallow: /caf\xe9", [(2, "not-utf-8")]),
        (GROUP + b"Disallow: /a\0b", [(2, "nul")]),
        (GROUP + b"Disallow: /" + b"a" * 16_700, [(2, "cut")]),
        (b"User-agent:\nDisallow: /", [(1, "no-name")]),
        (b"User-agent: *bot\nDisallow: /", [(1, "no-name")]),
        (b"User-agent: * all\nDisallow: /", []),
        (b"User-agent: bot/1.0\nDisallow: /", [(1, "beyond-the-name")]),
        (GROUP + b"Disallow: https://a.example/b", [(2, "no-path")]),
        (GROUP + b"Disallow: /a$b", [(2, "dollar-inside")]),
        (GROUP + b"Sitemap: /s.xml", [(2, "relative-url")]),
        (GROUP + b"Disallow: /a\nDisallow: /a", [(3, "never-wins")]),
        (GROUP + b"Disallow: /a\nAllow: /a", [(2, "never-wins")]),
        (GROUP + b"Disallow: /a\nDisallow: /a*", [(2, "never-wins")]),
        (GROUP + b"Disallow: /%7Ea\nDisallow: /~a", [(3, "never-wins")]),
        (GROUP + b"Disallow: /*%2F\nDisallow: /*/", []),
        (GROUP + b"Disallow: /a\n\nUser-agent: b\nDisallow: /a", []),
        (b"User-agent: a\nUser-agent: b\nDisallow: /a\nDisallow: /a$", []),
    ],
)  # fmt: skip
def test_findings_have_their_lines(body, found):
    assert codes(body) == found


@pytest.mark.spec("T-2")
def test_what_each_line_was_taken_for():
    body = (
        b"# hello\nAllow: /\nUser-Agent: MyBot.2\nUser-agent: *\nUser-agent:\nDisallow:\n"
        b"Disallow: /a\r\nAllow: b\rSitemap: https://a.example/s\nCrawl-delay: 1\n"
        b"Crawl-delay: soon\nUser-agent: plain\nNosnippet: x\nwords\n"
    )
    assert [reading.taken_for for reading in lint(body).readings] == [
        "",
        "allow for nobody",
        "a group for mybot or mybot.2",
        "a group for anyone",
        "a group for nobody",
        "disallow nothing",
        "disallow /a",
        "allow that never matches",
        "sitemap https://a.example/s",
        "crawl-delay, beyond the standard",
        "crawl-delay that is not taken",
        "a group for plain",
        "an unknown field",
        "nothing: skipped",
    ]
    assert [reading.line for reading in lint(body).readings] == list(range(1, 15))
    assert lint(body).readings[6].raw == "Disallow: /a"
    assert lint(b"\xef\xbb\xbfA: \xff").readings[0].raw == "A: \\xff"


@pytest.mark.spec("F-13")
def test_what_is_over_the_limit_is_not_read():
    line = b"Disallow: /" + b"a" * 989 + b"\n"
    result = lint(GROUP + line * 600)
    assert result.findings[0].code == "too-large"
    assert len(result.readings) == 1 + (512_000 - len(GROUP)) // len(line)
    assert lint(b"a" * 600_000).readings == []


@pytest.mark.spec("F-13")
def test_a_line_that_ends_with_the_limit_is_read():
    rule = b"\nDisallow: /a"
    body = GROUP.rstrip() + b" " * (512_000 - len(GROUP.rstrip() + rule)) + rule
    assert [r.taken_for for r in lint(body + b"\nDisallow: /b").readings][-1] == "disallow /a"


@given(st.lists(st.sampled_from([b"User-agent: *", b"User-agent: b", b"Allow: ", b"Disallow: /", b"Disallow: /a", b"Allow: /a*", b"Disallow: /a$", b"Allow: /*a", b"Disallow: *", b"x", b"\xef\xbb", b"\0"]), max_size=12), st.sampled_from([b"\n", b"\r", b"\r\n"]))  # fmt: skip
def test_any_file_has_as_many_readings_as_lines(parts, end):
    result = lint(end.join(parts))
    assert [r.line for r in result.readings] == list(range(1, len(result.readings) + 1))
    assert {finding.code for finding in result.findings} <= CODES.keys()


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([b"/a", b"/a*", b"/a**", b"/a$", b"/*a", b"/", b"*", b"**", b"/b"])), max_size=6), st.sampled_from(["/", "/a", "/ab", "/ba", "/b"]))  # fmt: skip
def test_a_rule_that_never_wins_never_wins(rules, target):
    lines = [(b"Allow: " if allow else b"Disallow: ") + value for allow, value in rules]
    result = lint(GROUP + b"\n".join(lines))
    losers = {finding.line for finding in result.findings if finding.code == "never-wins"}
    words = [2 * number + allow for number, (allow, _) in enumerate(rules, 2)]
    assert RuleSet([value for _, value in rules], words).verdict_for(target).line not in losers
