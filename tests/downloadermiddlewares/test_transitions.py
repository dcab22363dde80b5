"""What becomes of a request: the table, and that the middleware does what it says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.test import get_crawler

from scrapy_rep import (
    CrawlClosingError,
    RobotsTxtFetchMiddleware,
    RobotsTxtMiddleware,
    RobotsTxtResponseMiddleware,
)
from scrapy_rep.decision.decider import Decision
from scrapy_rep.downloadermiddlewares.composition import Composition
from scrapy_rep.downloadermiddlewares.transitions import TRANSITIONS, Action, Situation
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.scheduler.source import NOTE_KEY, Source, copy_for_scheduler, store_source
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.per_crawl import get_part

# As it was decided on, by hand: nothing of it is read from the code.
TABLE = """
    known, allowed          | pass      | pass    | pass      | pass
    refused for too long    | drop      | drop    | pass      | pass
    known, forbidden        | drop      | drop    | drop      | drop
    unreachable, deferring  | give back | drop    | drop      | wait
    not known, room         | wait      | wait    | wait      | wait
    not known, no room      | wait      | wait    | put off   | wait
    closing, first time     | if kept   | if kept | if kept   | if kept
    closing, again          | drop      | drop    | drop      | drop
"""
SOURCES = ("queue", "overdue", "scheduler", "direct")
SITUATIONS = {
    "known, allowed": Situation.ALLOWED,
    "refused for too long": Situation.REFUSED,
    "known, forbidden": Situation.FORBIDDEN,
    "unreachable, deferring": Situation.DEFERRED,
    "not known, room": Situation.UNKNOWN,
    "not known, no room": Situation.CROWDED,
    "closing, first time": Situation.CLOSING,
    "closing, again": Situation.CLOSING_AGAIN,
}
ACTIONS = {
    "pass": Action.PASS,
    "drop": Action.DROP,
    "wait": Action.WAIT,
    "give back": Action.GIVE_BACK,
    "if kept": Action.GIVE_BACK_IF_KEPT,
    "put off": Action.PUT_OFF,
}
CELLS = [
    (situation.strip(), source, action.strip())
    for situation, *actions in (line.split("|") for line in TABLE.strip().splitlines())
    for source, action in zip(SOURCES, actions, strict=True)
]
cells = pytest.mark.parametrize(("situation", "source", "action"), CELLS)


@cells
def test_a_cell_of_the_table(situation, source, action):
    assert TRANSITIONS[SITUATIONS[situation]][Source(source)] is ACTIONS[action]


def test_there_is_a_cell_for_every_situation_and_source():
    assert {(SITUATIONS[situation], Source(source)) for situation, source, _ in CELLS} == {
        (situation, source) for situation in Situation for source in Source
    }
    assert set(TRANSITIONS) == set(Situation)
    assert all(set(row) == set(Source) for row in TRANSITIONS.values())
    assert {action for row in TRANSITIONS.values() for action in row.values()} == set(Action)


def test_nothing_but_what_is_allowed_passes():
    passed = {
        situation for situation, row in TRANSITIONS.items() if Action.PASS in set(row.values())
    }
    assert passed == {Situation.ALLOWED, Situation.REFUSED}


# The middleware in every situation, without a crawl.

URL = "http://site.example/page"
ORIGIN = origin_of(URL)
ALLOWED = Verdict(allowed=True, reason=Reason.NO_RULE)
FORBIDDEN = Verdict(allowed=False, reason=Reason.RULE)
UNREACHABLE = Verdict(allowed=False, reason=Reason.UNREACHABLE)
PRIORITY = 7
CONCURRENT_REQUESTS = 16
"""Scrapy's default."""


def decided(verdict):
    return Decision(ORIGIN, "/page", ("testbot",), verdict)


class StandIn:
    """Decider, cache and gate of the middleware, all of which say what the test wants."""

    def __init__(self, known=None, found=ALLOWED):
        self.verdict = known
        self.found = found
        self.waited = 0
        self.asked = []
        self.closing = False
        self.deferring = True

    def known_decision(self, request):
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return decided(self.verdict)

    async def decision(self, request, decision):
        self.waited += 1
        if isinstance(self.found, Exception):
            raise self.found
        return decision._replace(verdict=self.found)

    def defers(self, source, request, entry):
        return self.deferring


def middleware(stand_in, *, keeps=True, **settings):
    crawler = get_crawler(
        settings_dict={
            "ROBOTSTXT_OBEY": True,
            "REP_STORE": "memory://",
            "USER_AGENT": "testbot/1.0",
            "DOWNLOADER_MIDDLEWARES": {
                RobotsTxtFetchMiddleware: 1_000,
                RobotsTxtResponseMiddleware: 0,
            },
            **settings,
        }
    )
    crawler.engine = SimpleNamespace(
        downloader=SimpleNamespace(total_concurrency=CONCURRENT_REQUESTS)
    )
    made = RobotsTxtMiddleware.from_crawler(crawler)
    # Browsers of later tests are asked about by all crawls of the process.
    get_part(made._crawler, Composition)._subresources.close()
    made.decider = made._cache = stand_in
    made._waiting = WaitingRequests(crawler, stand_in, made.gate, None, Clock())
    made.gate.defers = stand_in.defers
    made.gate.look_up_later = lambda origin, request: stand_in.asked.append((origin, request))
    made._scheduler_stores_requests = keeps
    return made


def coming_from(source, *, returned=False):
    request = Request(URL, priority=PRIORITY)
    if returned:
        request = copy_for_scheduler(request)
    if source != "direct":
        store_source(request, Source(source))
    return request


def run(awaitable):
    """Run to its end what has nothing to wait for."""
    with pytest.raises(StopIteration) as ended:
        awaitable.__await__().send(None)
    return ended.value.value


def outcome(made, request):
    """What the middleware does with ``request``."""
    try:
        returned = made.process_request(request)
        if returned is not None:
            returned = run(returned)
    except IgnoreRequest:
        return "drop"
    finally:
        assert NOTE_KEY not in request.meta
    if returned is None:
        return "pass"
    # What goes back is a request of its own: what was noted of it is nobody else's.
    assert returned is not request
    assert returned.dont_filter
    return "give back" if returned.priority == PRIORITY else "put off"


def in_situation(situation, stand_in, made):
    """Bring it about; return whether the request was given back before."""
    if situation == "known, allowed":
        stand_in.verdict = ALLOWED
    elif situation == "refused for too long":
        stand_in.verdict = ALLOWED
        if made._back_off is not None:
            made._back_off.is_dropping = lambda host: True
            made._start_checking_all()
    elif situation == "known, forbidden":
        stand_in.verdict = FORBIDDEN
    elif situation == "unreachable, deferring":
        stand_in.verdict = UNREACHABLE
    elif situation == "not known, no room":
        made._waiting.waiting = CONCURRENT_REQUESTS
    elif situation.startswith("closing"):
        stand_in.closing = True
        return situation.endswith("again")
    return False


@pytest.mark.parametrize("keeps", [True, False])
@cells
def test_the_middleware_does_what_the_cell_says(situation, source, action, keeps):
    stand_in = StandIn()
    made = middleware(stand_in, keeps=keeps)
    returned = in_situation(situation, stand_in, made)
    done = outcome(made, coming_from(source, returned=returned))
    expected = {"if kept": "give back" if keeps else "drop", "wait": "pass"}.get(action, action)
    assert done == expected
    assert stand_in.waited == (action == "wait")
    assert [origin for origin, _ in stand_in.asked] == [ORIGIN] * (action == "put off")


@cells
def test_a_dry_run_drops_nothing(situation, source, action):
    stand_in = StandIn()
    made = middleware(stand_in, keeps=False, REP_DRY_RUN=True)
    made._dry_run._builtin_allows = not_known
    stand_in.deferring = False  # as the gate has it in a dry run
    returned = in_situation(situation, stand_in, made)
    done = outcome(made, coming_from(source, returned=returned))
    assert done == ("put off" if action == "put off" else "pass")


@pytest.mark.parametrize(("dry_run", "ends"), [(False, "drop"), (True, "pass")])
@pytest.mark.parametrize("source", SOURCES)
def test_after_an_error_a_request_is_dropped_unless_in_a_dry_run(source, dry_run, ends):
    made = middleware(StandIn(ZeroDivisionError("made up")), REP_DRY_RUN=dry_run)
    assert outcome(made, coming_from(source)) == ends


async def not_known(*_):
    return None


@pytest.mark.parametrize(
    ("situation", "source", "ends"),
    [
        ("unreachable, deferring", "queue", "pass"),
        ("not known, no room", "scheduler", "pass"),
        ("closing, first time", "queue", "drop"),
        ("closing, first time", "scheduler", "drop"),
    ],
)
def test_what_comes_back_past_the_scheduler_does_not_go_round_and_round(situation, source, ends):
    """As ``download_async`` does with whatever is given back to it."""
    stand_in = StandIn()
    made = middleware(stand_in)
    in_situation(situation, stand_in, made)
    returned = run(made.process_request(coming_from(source)))
    assert outcome(made, returned) == ends


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize(
    ("found", "situation"),
    [
        (ALLOWED, "known, allowed"),
        (FORBIDDEN, "known, forbidden"),
        (UNREACHABLE, "unreachable, deferring"),
        # Whoever was given back for another reason meets the close for the first time.
        (CrawlClosingError(), "closing, first time"),
        # After an error a request is dropped, as where it is disallowed.
        (ZeroDivisionError("made up"), "known, forbidden"),
    ],
)
@pytest.mark.parametrize("source", SOURCES)
def test_who_has_waited_goes_by_the_table(source, found, situation, returned, keeps):
    made = middleware(StandIn(None, found), keeps=keeps)
    action = TRANSITIONS[SITUATIONS[situation]][Source(source)]
    if action is Action.GIVE_BACK_IF_KEPT:
        action = Action.GIVE_BACK if keeps else Action.DROP
    if action is Action.WAIT:
        action = Action.DROP  # once, for the next try
    assert ACTIONS[outcome(made, coming_from(source, returned=returned))] is action
    assert made._waiting.waiting == 0


@pytest.mark.parametrize(
    "found", [FORBIDDEN, UNREACHABLE, CrawlClosingError(), ZeroDivisionError()]
)
@pytest.mark.parametrize("source", SOURCES)
def test_in_a_dry_run_who_has_waited_passes(source, found):
    stand_in = StandIn(None, found)
    made = middleware(stand_in, keeps=False, REP_DRY_RUN=True)
    made._dry_run._builtin_allows = not_known
    stand_in.deferring = False
    assert outcome(made, coming_from(source)) == "pass"


def test_who_waits_is_counted_only_as_long():
    stand_in = StandIn()
    made = middleware(stand_in)
    counted = []

    async def decision(request, decision):
        counted.append(made._waiting.waiting)
        return decision._replace(verdict=ALLOWED)

    stand_in.decision = decision
    assert outcome(made, coming_from("queue")) == "pass"
    assert (counted, made._waiting.waiting) == ([1], 0)
