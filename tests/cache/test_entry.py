"""What is held of an origin, for many crawlers at once."""

import pytest
from scrapy import Request

from scrapy_rep.cache.entry import _AFTER_LOOKUP, _MAX_TOKEN_LISTS, MAX_UNUSED, Entry
from scrapy_rep.downloadermiddlewares.gate import _LIFE
from scrapy_rep.protocol.access_policy import Access
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from tests.made_up_network import Network, make_lookups
from tests.made_up_time import MadeUpTime
from tests.waiting import settle


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
    rules = entry._rules[lists[0]]
    cache.put_record(origin, Record(origin, copy, copy), ("later",), lists[0])
    assert entry._rules[lists[0]] is rules
    assert len(entry._rules) == _MAX_TOKEN_LISTS


@pytest.mark.parametrize(
    ("verdict", "is_used", "end", "last", "last_if_shared"),
    [
        (None, False, 20.0, 10.0 + MAX_UNUSED, 60.0 + _AFTER_LOOKUP),
        (None, False, 1e6, 1e6, 1e6),
        (Verdict(True, Reason.UNAVAILABLE), False, 20.0, 10.0 + MAX_UNUSED, 60.0 + _AFTER_LOOKUP),
        (Verdict(True, Reason.UNAVAILABLE), True, 20.0, 20.0, 20.0),
        # Only the next try shows whether the site is reachable again.
        (Verdict(False, Reason.UNREACHABLE), False, 20.0, 20.0, 20.0),
    ],
)
def test_an_entry_that_no_page_has_used_is_valid_for_one(
    verdict, is_used, end, last, last_if_shared
):
    entry = Entry(Access(verdict, None, 10.0, end))
    if is_used:
        entry.mark_used()
    for is_alone, until in (True, last), (False, last_if_shared), (True, last):
        entry.mark_looked_up(60.0, is_alone=is_alone)
        times = (9.9, 10.0, until - 0.1, until)
        assert [entry.is_valid(now) for now in times] == [False, True, True, False]


def test_a_page_is_sent_a_second_at_most_after_another_worker_has_newer_rules():
    assert _AFTER_LOOKUP + _LIFE <= 1


@pytest.mark.event_loop
def test_expired_rules_decide_on_their_first_page_unless_the_store_has_newer_ones():
    time = MadeUpTime()
    network = Network(time)
    mine, theirs = network.lookups(), network.lookups()
    theirs.store = theirs.records._store = mine.store
    parsed = []
    mine.cache.parsed = lambda robots, page: parsed.append(robots)
    site, page = origin_of("http://a.example"), Request("http://a.example/page")

    def allows(lookups):
        found = []
        lookups.join(site, ("bot",), page, found.append)
        settle()
        return found[0].entry.verdict("/page", ("bot",)).allowed

    def now_says(body):
        network.outcomes[site] = network.outcome(site, body, seconds=3)

    now_says(b"User-agent: *\nAllow: /\n")
    mine.join_store()
    assert allows(mine)
    time.advance(MAX_UNUSED - 1)
    # A worker that is alone does not read the store again.
    mine.cache.known_entry(site).mark_used()
    now_says(b"User-agent: *\nAllow: /\n")
    theirs.join_store()
    assert allows(theirs)
    assert allows(mine)
    time.advance(10)
    assert mine.cache.known_entry(site) is None
    assert allows(mine)
    assert len(parsed) == 2
    mine.cache.known_entry(site).mark_used()
    assert network.fetched == [site] * 2
    now_says(b"User-agent: *\nDisallow: /\n")
    assert not allows(mine)
    # Newer rules that have expired, too, are as good for a first page.
    time.advance(10)
    assert not allows(theirs)
    assert network.fetched == [site] * 3
    time.advance(MAX_UNUSED - 11)
    assert not allows(theirs)
    time.advance(2)
    now_says(None)
    assert allows(theirs)
    assert network.fetched == [site] * 4


def test_robotstxt_itself_is_allowed_without_the_rules_for_the_tokens():
    copy = Available(b"User-agent: *\nDisallow: /\n", Evidence(0.0, "https://a/robots.txt"))
    entry = Entry(Access(None, copy, 0.0, 1.0))
    entry.add_rules(("a",), RobotsTxt.parse(copy.body))
    assert entry.verdict("/robots.txt", ("b",)).reason is Reason.ROBOTSTXT
    assert entry.verdict("/", ("b",)) is None
