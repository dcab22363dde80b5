"""What hostile files and URLs cost, in calls and bytes: nothing here looks at a clock."""

import gc
import sys
import tracemalloc

import pytest

from scrapy_rep.protocol import RobotsTxt, target_of
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from tests.protocol.hostile import FILES, URL_LENGTH, URLS

SIZE = 8 * 1024


def calls(function, *values):
    """Return how many functions, of Python and of C, a call calls."""
    count = 0

    def profile(_frame, event, _function):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function(*values)
    finally:
        sys.setprofile(None)
    return count


def parse(body):
    return RobotsTxt.parse(body).rules_for("scrapy")


@pytest.mark.parametrize("name", FILES)
def test_twice_the_file_costs_at_most_twice(name):
    once, twice = (calls(parse, FILES[name](size)) for size in (SIZE, 2 * SIZE))
    assert twice <= 2.2 * once + 4_000  # an index begins at a number of rules
    assert once < 3 * SIZE


@pytest.mark.parametrize("name", FILES)
def test_a_verdict_costs_at_most_a_few_calls_a_rule(name):
    body = FILES[name](SIZE)
    rules = parse(body)
    parts = body.count(b"*") + body.count(b"\n")
    for url in URLS(body).values():
        assert calls(rules.verdict_for, target_of(url)) < 20 * parts + 200


@pytest.mark.parametrize("name", FILES)
def test_memory_is_that_of_32_mib_for_500_kib(name):
    body = FILES[name](MAX_BODY_BYTES // 8)
    tracemalloc.start()
    try:
        rules = parse(body)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20 // 8
    assert rules.nbytes < 16 * 2**20 // 8
    assert rules.nbytes > 0.9 * (held - 10_000)  # what it knows of, beside caches of few entries


def test_a_target_costs_at_most_a_few_calls_a_character():
    for url in URLS(b"").values():
        assert calls(target_of, url) < 3 * URL_LENGTH
