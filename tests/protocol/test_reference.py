"""The engine beside the slow reference, on generated files and URLs; more: tests/fuzz/verdicts.py."""

import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol import RobotsTxt
from tests.protocol import asking, made_up, reference
from tests.protocol.made_up import PIECES, QUERY_PIECES, joined

many = settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

seeds = st.integers(0, 2**32)


@many
@given(seeds)
def test_engine_and_reference_agree(seed):
    rng = random.Random(seed)
    body = made_up.body(rng)
    asking.check_lines(body)
    for _ in range(2):
        asking.agreed(body, *made_up.path_and_tokens(rng))


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"user-agent: a\nallow: *\ndisallow: /\n", "/"),
        (b"user-agent: a\nDisallow\nuser-agent: b\nallow: /a**\ndisallow: /a*$\n", "/a"),
        (b"user-agent: a\ndisallow: /a***\nallow: /ab\n", "/ab"),
    ],
)
def test_engine_and_reference_agree_on_what_was_found(body, path):
    asking.agreed(body, path, ["a"])


@pytest.mark.rfc9309("2.2.2")
@many
@given(seeds.map(random.Random).map(made_up.pattern_and_path))
@example(("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"))
@example(("/*%2F", "/?u=b%2Fc"))
def test_engine_and_reference_agree_on_escapes_in_queries(pattern_and_path):
    pattern, path = pattern_and_path
    asking.agreed(f"user-agent: *\ndisallow: {pattern}\n".encode(), path)


@pytest.mark.spec("M-2")
@many
@given(seeds.map(random.Random).map(made_up.lone_percent_and_path))
@example(("/*=%", "/?u=%2Fb"))
@example(("*url%2*", "/s?x=url%2Fwatches"))
def test_a_rule_with_a_lone_percent_holds_as_written(pattern_and_path):
    pattern, path = pattern_and_path
    for line, allowed in (("disallow", False), ("disallow: /\nallow", True)):
        found = asking.agreed(f"user-agent: *\n{line}: {pattern}\n".encode(), path)
        assert found.allowed is allowed


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_engine_and_reference_agree_on_many_wildcards(seed):
    rng = random.Random(seed)
    pieces = rng.choice([PIECES, QUERY_PIECES])
    count = rng.choice([20, 300])
    patterns = {f"/{joined(rng, 3, pieces)}*{joined(rng, 7, pieces)}" for _ in range(count)}
    body = "user-agent: *\n" + "".join(f"disallow: {pattern}\n" for pattern in patterns)
    rules = RobotsTxt.parse(body.encode()).rules_for("a")
    forms = [reference.canonical(reference.octets_of(p), pattern=True) for p in patterns]
    for _ in range(5):
        target = reference.target_of("/" + joined(rng, 20, pieces))
        found = [len(form) for form in forms if reference.matches(form, target)]
        rule = rules.verdict_for(target).rule
        assert (rule and len(rule.pattern)) == max(found, default=None)


def literal_of(rng):
    path = "/" + "".join(rng.choices("ab/", k=rng.randrange(1, 8)))
    return path[: rng.randrange(1, 9)] + rng.choice(["", "", "", "$", "*", "**"])


@settings(max_examples=40, deadline=None)
@given(seeds)
@example(1)
def test_engine_and_reference_agree_on_literals_of_every_number(seed):
    rng = random.Random(seed)
    count = rng.choice([10, 16, 17, 40, 64, 65, 200, 600])
    prefix = rng.choice(["", "", "/long"])
    filler = [f"/x{number}" for number in range(count)]
    patterns = [prefix + literal_of(rng) for _ in range(count)]
    patterns += rng.sample(filler, rng.randrange(count))
    lines = {pattern: rng.choice(["Allow", "Disallow", "disallow"]) for pattern in patterns}
    body = "User-agent: *\n" + "".join(f"{lines[p]}: {p}\n" for p in lines)
    rules = RobotsTxt.parse(body.encode()).rules_for("a")
    forms = [(reference.canonical(p, pattern=True), lines[p] == "Allow") for p in lines]
    for _ in range(12):
        target = prefix + "/" + "".join(rng.choices("ab/x1", k=rng.randrange(0, 9)))
        found = [(len(form), allow) for form, allow in forms if reference.matches(form, target)]
        rule = rules.verdict_for(target).rule
        assert (rule and (len(rule.pattern), rule.allow)) == max(found, default=None)
