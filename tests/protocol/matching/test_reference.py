"""The engine beside the slow reference, on generated files and URLs.

HYPOTHESIS_PROFILE=long runs 100,000 examples.
"""

import os
import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_rep.protocol import RobotsTxt
from tests.protocol import asking, reference
from tests.protocol.made_up import PIECES, QUERY_PIECES, joined, pattern_and_path

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
many = settings(
    max_examples=100_000 if LONG else 500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

pieces = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
values = st.one_of(
    pieces,
    pieces.map("/{}".format),
    st.sampled_from(
        ["/index.html", "/a/index.htmx", "/a*/index.html?q", "*/index.html$", "/robots.txt"]
    ),
    st.text(max_size=6),
)
agents = st.sampled_from(["a", "b", "a-b", "A/1.0", "a1", "a.b", "*", "* x", "**", "", "*a", "a b"])
spaces = st.sampled_from(["", " ", "\t", "  ", "\x0b"])
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", " # c\n", "#\n", "\0x\n"])
fields = st.sampled_from(
    ["allow", "disallow", "Disallow", "Allow", "ALLOW", "disalow", "allows", "sitemap", "x", ""]
)
colons = st.sampled_from([":", ":", ":", ": ", " : ", " ", "", "::"])
agent_fields = st.sampled_from(
    ["user-agent", "User-agent", "useragent", "user agent", "USER-AGENTS"]
)
line = st.one_of(
    st.tuples(spaces, fields, colons, values, spaces, ends),
    st.tuples(spaces, fields, colons, values, spaces, ends),
    st.tuples(spaces, agent_fields, colons, agents, spaces, ends),
    st.tuples(st.text(max_size=5), ends),
).map("".join)
bodies = st.one_of(
    st.lists(line, max_size=14).map("".join),
    st.lists(line, max_size=14).map(lambda them: "user-agent: *\n" + "".join(them)),
    st.lists(values, max_size=40).map(
        lambda them: "user-agent: a\n" + "".join(f"disallow: /{value}\n" for value in them)
    ),
).map(lambda text: text.encode("utf-8", "surrogatepass"))
paths = st.one_of(pieces, values, st.text(max_size=8)).map(lambda text: "/" + text.replace("#", ""))
tokens = st.lists(st.sampled_from(["a", "b", "a-b", "a1", "a.b", "A", "*"]), max_size=2)


@many
@given(bodies, paths, tokens)
@example(b"user-agent: a\nallow: *\ndisallow: /\n", "/", ["a"])
@example(b"user-agent: a\nDisallow\nuser-agent: b\nallow: /a**\ndisallow: /a*$\n", "/a", ["a"])
@example(b"user-agent: a\ndisallow: /a***\nallow: /ab\n", "/ab", ["a"])
def test_engine_and_reference_agree(body, path, names):
    verdict = asking.verdict(body, f"http://h{path}", *names)
    allowed, octets = reference.verdict(body, path, names)
    assert (verdict.allowed, verdict.rule and len(verdict.rule.pattern)) == (allowed, octets)


@pytest.mark.rfc9309("2.2.2")
@many
@given(st.integers(0, 2**32).map(random.Random).map(pattern_and_path))
@example(("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"))
@example(("/*%2F", "/?u=b%2Fc"))
def test_engine_and_reference_agree_on_escapes_in_queries(pattern_and_path):
    pattern, path = pattern_and_path
    body = f"user-agent: *\ndisallow: {pattern}\n".encode()
    verdict = asking.verdict(body, f"http://h{path}")
    expected = reference.verdict(body, path, ())
    assert (verdict.allowed, verdict.rule and len(verdict.rule.pattern)) == expected


@settings(max_examples=1_000 if LONG else 25, deadline=None)
@given(st.integers(0, 2**32))
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


@settings(max_examples=2_000 if LONG else 40, deadline=None)
@given(st.integers(0, 2**32))
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
