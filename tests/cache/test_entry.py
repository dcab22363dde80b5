"""What is held of an origin, for many crawlers at once."""

import pytest

from scrapy_rep.cache.entry import _MAX_TOKEN_LISTS, _MAX_UNUSED, Entry
from scrapy_rep.protocol.access_policy import Access
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from tests.made_up_network import make_lookups
from tests.made_up_time import MadeUpTime


def test_the_rules_of_the_last_crawlers_are_held_and_only_the_oldest_go():
    body = b"User-agent: *\nDisallow: /private\nCrawl-delay: 2\nContent-Usage: search=y\n"
    copy = Available(body, Evidence(0.0, "http://a.example/robots.txt", 200))
    entry = Entry(Access(None, copy, 0.0, 1.0))
    robots = RobotsTxt.parse(body)
    crawlers = [(f"bot{'x' * n}",) for n in range(_MAX_TOKEN_LISTS + 2)]
    for tokens in crawlers:
        entry.add_rules(tokens, robots)
    has_rules = [entry.verdict("/", tokens) is not None for tokens in crawlers]
    assert has_rules == [False, False] + [True] * _MAX_TOKEN_LISTS
    assert entry.delay(crawlers[1]) is None
    assert entry.delay(crawlers[2]).seconds == 2
    assert entry.usage("/", crawlers[1]).result("search") == "unknown"
    assert entry.usage("/", crawlers[2]).result("search") == "allow"


def test_none_of_those_that_wait_for_a_lookup_loses_its_rules():
    cache = make_lookups(None, MadeUpTime().clock).cache
    origin = origin_of("http://a.example")
    copy = Available(b"User-agent: *\n", Evidence(0.0, origin.robotstxt_url, 200))
    lists = [(f"bot{'x' * n}",) for n in range(_MAX_TOKEN_LISTS + 7)]
    cache.put_record(origin, Record(origin, copy, copy), lists[-1])
    entry = cache.put_record(origin, Record(origin, copy, copy), *lists[::-1]).entry
    assert all(entry.verdict("/", tokens) for tokens in lists)
    cache.put_record(origin, Record(origin, copy, copy), ("later",))
    assert len(entry._rules) == _MAX_TOKEN_LISTS


@pytest.mark.parametrize(
    ("verdict", "is_used", "end"),
    [
        (None, False, 10.0 + _MAX_UNUSED),
        (Verdict(True, Reason.UNAVAILABLE), False, 10.0 + _MAX_UNUSED),
        (Verdict(True, Reason.UNAVAILABLE), True, 20.0),
        # Only the next try shows whether the site is reachable again.
        (Verdict(False, Reason.UNREACHABLE), False, 20.0),
    ],
)
def test_an_entry_that_no_page_has_used_is_valid_for_one(verdict, is_used, end):
    entry = Entry(Access(verdict, None, 10.0, 20.0))
    if is_used:
        entry.mark_used()
    times = (9.9, 10.0, 19.9, end - 0.1, end)
    assert [entry.is_valid(now) for now in times] == [False, True, True, True, False]
    long = Entry(Access(verdict, None, 10.0, 1e6))
    assert long.is_valid(1e6 - 1)
    assert not long.is_valid(1e6)


def test_robotstxt_itself_is_allowed_without_the_rules_for_the_tokens():
    copy = Available(b"User-agent: *\nDisallow: /\n", Evidence(0.0, "https://a/robots.txt"))
    entry = Entry(Access(None, copy, 0.0, 1.0))
    entry.add_rules(("a",), RobotsTxt.parse(copy.body))
    assert entry.verdict("/robots.txt", ("b",)).reason is Reason.ROBOTSTXT
    assert entry.verdict("/", ("b",)) is None
