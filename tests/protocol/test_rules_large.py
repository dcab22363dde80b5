"""Groups of many rules, which are kept and searched in other ways than those of few."""

import pytest

from scrapy_rep.protocol import Reason, RobotsTxt
from tests.protocol.asking import TIMES


def rules_of(lines):
    return RobotsTxt.parse(("user-agent: *\n" + "\n".join(lines)).encode()).rules_for("a")


@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_every_literal_is_found(count):
    paths = [f"/{number * 7919 % 10_007}" for number in range(count)]
    rules = rules_of([f"disallow: {path}$" for path in paths])
    for line, path in enumerate(paths, 2):
        assert rules.verdict_for(path).line == line
        assert rules.verdict_for(path + "x").allowed
    assert rules.verdict_for("/").allowed
    assert rules.verdict_for("/~").allowed


@pytest.mark.parametrize("count", [10, 100])
def test_every_nested_literal_is_found(count):
    paths = ["/" + "ab" * number for number in range(1, count)]
    rules = rules_of([f"disallow: {path}" for path in reversed(paths)])
    for path in paths:
        assert rules.verdict_for(path).rule.pattern == path
        assert rules.verdict_for(path + "c").rule.pattern == path
        assert rules.verdict_for(path + "!").rule.pattern == path
    assert rules.verdict_for("/b").allowed


@pytest.mark.spec("M-4")
@pytest.mark.parametrize("count", [10, 100])
def test_a_longer_pattern_of_stars_goes_before_a_longer_prefix(count):
    rules = rules_of(
        [f"disallow: /x{number}" for number in range(count)]
        + ["allow: /a*****", "disallow: /a/b", "disallow: /a/bcdefgh", "allow: /a*"]
    )
    for _ in range(TIMES):
        assert rules.verdict_for("/a/b").rule.pattern == "/a*****"
        assert rules.verdict_for("/a/bcdefgh").rule.pattern == "/a/bcdefgh"
        assert rules.verdict_for("/a").allowed


@pytest.mark.parametrize("count", [1, 200])
def test_every_wildcard_is_found(count):
    rules = rules_of(
        [f"disallow: /*/{number}/*x$" for number in range(count)]
        + ["disallow: /*?", "disallow: /*ab", "allow: /*?q=*&"]
    )
    for number in range(count):
        assert rules.verdict_for(f"/a/{number}/yx").line == number + 2
        assert rules.verdict_for(f"/a/{number}/y").allowed
    assert rules.verdict_for("/?").line == count + 2
    assert rules.verdict_for("/cab").line == count + 3
    assert rules.verdict_for("/?q=1&").line == count + 4
    assert rules.verdict_for("/cba").rule is None
    assert rules.nbytes > 50 * count


def test_many_candidates_for_one_target():
    rules = rules_of([f"disallow: /*a*{number}*b$" for number in range(1_000)])
    assert rules.verdict_for("/a999b").line == 1_001
    assert rules.verdict_for("/" + "a" * 500 + "b").allowed
    assert rules.verdict_for("/a77b").rule.pattern == "/*a*77*b$"


def test_a_wildcard_without_slash_or_star_at_its_start_matches_nothing():
    rules = rules_of(["disallow: a*b", "disallow: $*b"])
    assert {rules.verdict_for("/ab").reason for _ in range(TIMES)} == {Reason.NO_RULE}
    assert rules_of(["disallow: /a", "disallow: a*b"]).verdict_for("/ab").line == 2


@pytest.mark.parametrize("again", [[], ["disallow: /q", "disallow: /q"]])
@pytest.mark.parametrize(
    "lines", [["disallow: /xa**", "disallow: /xa*$"], ["disallow: /*xa", "disallow: /*a$"]]
)
def test_of_equally_long_patterns_the_first_line_is_named(lines, again):
    assert rules_of(lines + again).verdict_for("/xa").line == 2
