"""What hostile files and URLs cost, in calls and bytes: nothing here looks at a clock."""

import gc
import sys
import tracemalloc

import pytest

from scrapy_rep.protocol import Reason, RobotsTxt, target_of
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS
from scrapy_rep.protocol.limits import MAX_BODY_BYTES, MAX_META_ELEMENTS, MAX_WORK
from scrapy_rep.protocol.usage import Usage
from tests.protocol.hostile import FILES, URL_LENGTH, URLS

SIZE = 8 * 1024
PART = 16
"""Of the largest file, whose memory is measured, and of its bound."""


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


def index(body):
    """Return rules that are sorted, as one begins each target."""
    rules = parse(b"user-agent: *\nallow: /\n" + body)
    rules.verdict_for("/a")
    return rules


@pytest.mark.parametrize("name", FILES)
def test_twice_the_file_costs_at_most_twice(name):
    once, twice = (calls(index, FILES[name](size)) for size in (SIZE, 2 * SIZE))
    assert twice <= 2.2 * once + 5_000
    assert once < 20 * SIZE


@pytest.mark.parametrize("name", FILES)
def test_a_verdict_costs_at_most_a_few_calls_a_rule(name):
    body = FILES[name](SIZE)
    rules = parse(body)
    parts = body.count(b"*") + body.count(b"\n")
    for url in URLS(body).values():
        assert calls(rules.verdict_for, target_of(url)) < 20 * parts + 200


@pytest.mark.parametrize("name", FILES)
def test_memory_is_that_of_32_mib_for_500_kib(name):
    body = FILES[name](MAX_BODY_BYTES // PART)
    tracemalloc.start()
    try:
        rules = index(body)
        nbytes = rules.nbytes
        gc.collect()
        with_rules, peak = tracemalloc.get_traced_memory()
        del rules
        gc.collect()
        held = with_rules - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert peak < 32 * 2**20 // PART
    assert nbytes < 32 * 2**20 // PART
    # Threads of the test runner allocate something, too; and what each group has is not counted.
    assert nbytes > 0.9 * held - 4_096


def test_rules_that_are_filed_are_not_all_compared():
    assert calls(index(b"".join(b"allow: /%d*x\n" % n for n in range(999))).verdict_for, "/a") < 50


STAGES = {
    "delays": lambda body: RobotsTxt.parse(body).fields_for("scrapy", names=DELAY_FIELDS),
    "sitemaps": lambda body: RobotsTxt.parse(body).sitemaps,
    "groups": lambda body: RobotsTxt.parse(body).groups,
    "group_for": lambda body: RobotsTxt.parse(body).group_for("scrapy"),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["only line ends", "lines of a letter", "blocks of such lines"])
def test_lines_that_say_nothing_cost_nothing(name, stage):
    body = b"user-agent: *\n" + FILES[name](SIZE) + b"\ncrawl-delay: 1"
    STAGES[stage](body)  # what is made at the first use
    assert calls(STAGES[stage], body) < SIZE / 8


def test_the_work_of_a_verdict_is_bounded_and_never_opens_anything():
    rules = parse(b"user-agent: *\nallow: /*a*b\nallow: /" + b"*a" * 8_000 + b"\n")
    verdict = rules.verdict_for("/" + "a" * (MAX_WORK // 16_000))
    assert (verdict.allowed, verdict.reason, verdict.rule) == (False, Reason.TOO_COSTLY, None)
    assert rules.verdict_for("/" + "a" * 1_000).allowed
    lone = parse(b"user-agent: *\n" + b"allow: /%x\n" * 20_000)
    long = target_of("http://h/%61" + "bcdefghijklmnop")
    assert lone.verdict_for(long).reason is Reason.TOO_COSTLY  # none is filed
    few = parse(b"user-agent: *\n" + b"disallow: /sale/50%-off-and-more\n" * 20)
    assert few.verdict_for("/" + "a" * 4_000).allowed
    many = parse(b"user-agent: *\n" + b"disallow: /abcdefgh\n" * 20_000)
    assert many.verdict_for("/" + "a" * MAX_WORK).allowed  # without a * no pattern costs much


def test_a_target_costs_at_most_a_few_calls_a_character():
    for url in URLS(b"").values():
        assert calls(target_of, url) < 3 * URL_LENGTH


def test_a_long_url_is_not_too_costly_for_a_few_rules():
    rules = parse(b"user-agent: *\ndisallow: /*.pdf$\ndisallow: /*?sort=\n")
    assert rules.verdict_for("/a?.pdf" + "x" * 100_000).reason is Reason.NO_RULE


@pytest.mark.parametrize(
    "element",
    [
        ("tdm-reservation", "0"),
        ("robots", "noai"),
        ("description", "noai"),
        (" " * 100 + "robots", "x," * 100),
    ],
)
def test_elements_of_a_page_cost_at_most_a_few_calls_each(element):
    assert calls(Usage().with_meta, [element] * 5 * MAX_META_ELEMENTS) < 5 * MAX_META_ELEMENTS
