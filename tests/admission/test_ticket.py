"""What is noted of a request on its way from the scheduler, and that nobody else gets to see it."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.request import request_from_dict

from scrapy_rep.admission.ticket import (
    TICKET_KEY,
    Source,
    Ticket,
    copy_for_scheduler,
    store_grant,
    store_source,
    take_ticket,
    ticket_of,
)
from tests.crawling.crawl import SCRAPYS_QUEUE, Downloads, crawl
from tests.crawling.web import RULES, answer, robots

URL = "http://site.example/"


def through_json(request):
    return request_from_dict(json.loads(json.dumps({**request.to_dict(), "body": ""})))


def through_pickle(request):
    return request_from_dict(pickle.loads(pickle.dumps(request.to_dict())))


WAYS = st.sampled_from([lambda request: request, through_json, through_pickle])
"""From one component to the next: in memory, or on disk."""


@given(
    st.booleans(),
    st.tuples(st.sampled_from(Source), WAYS),
    st.lists(st.tuples(st.sampled_from([*Source, None]), WAYS)),
)
def test_however_often_it_goes_back_it_is_what_it_was(dont_filter, first, returns):
    as_it_was = {"own": [1]}, dont_filter, 7
    request = Request(URL, meta={"own": [1]}, dont_filter=dont_filter, priority=7)
    source, way = first
    store_source(request, Source.SCHEDULER)
    store_source(request, source)  # the last who hands it on
    request = way(request)
    assert take_ticket(request) == Ticket(source=source.value)
    for source, way in returns:
        copy = copy_for_scheduler(request)
        assert (copy.dont_filter, copy.priority) == (True, 7)
        assert (request.meta, request.dont_filter, request.priority) == as_it_was
        request = way(copy)
        if source is not None:
            store_source(request, source)
        # Whom no scheduler hands on comes from none, wherever it came from before.
        ticket = take_ticket(request)
        assert ticket == Ticket(source=(source or Source.DIRECT).value, own_dont_filter=dont_filter)
        if source is Source.WIRE:  # it is sent as it is
            request.dont_filter = dont_filter
        assert (request.meta, request.dont_filter, request.priority) == as_it_was


def test_what_was_allowed_is_read_and_is_nobody_elses():
    request = Request(URL)
    assert ticket_of(request) is None
    store_grant(request, URL)
    assert ticket_of(request) == Ticket(URL)
    store_source(request, Source.WIRE)
    assert ticket_of(request) is None
    # A callback has copied the meta of a response.
    store_grant(request, URL)
    assert take_ticket(request) == Ticket()
    store_grant(request, URL)
    store_source(request, Source.QUEUE)
    assert take_ticket(request) == Ticket(source="queue")


# In crawls: the note is the middleware's, and nobody's behind it.


def keys(metas):
    return {key for meta in metas for key in meta if key.startswith("_robotstxt")}


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])
@pytest.mark.parametrize("more", [{}, {"REP_DRY_RUN": True}], ids=["obeys", "dry run"])
async def test_no_kind_of_request_shows_where_it_came_from(web, queue, more):
    site, failing = web.site(robots(RULES)), web.site(answer(503))
    moved = answer(302, headers={"Location": site.url("/new")})
    page = web.site(robots(RULES), paths={"/moved": [moved], "/busy": [answer(503), answer(200)]})
    unchecked = Request(site.url("/private/2"), meta={"dont_obey_robotstxt": True})
    pages = {}

    class Looks:
        """A middleware near the downloader, which sees what is going to the wire."""

        def process_request(self, request):
            pages[request.url] = dict(request.meta)

    class Spider(Downloads):
        def prepare(self, request):
            return super().prepare(request).replace(meta=dict(getattr(request, "meta", {})))

    result = await crawl(
        site.url("/"),
        site.url("/private"),
        unchecked,
        failing.url("/"),
        page.url("/moved"),
        page.url("/busy"),
        "data:,nothing",
        settings={"DOWNLOADER_MIDDLEWARES": {Looks: 10_000}, **queue, **more},
        spidercls=Spider,
        media=[site.url("/direct")],
    )
    sent = {site.url("/"), site.url("/new"), site.url("/direct"), unchecked.url, page.url("/busy")}
    assert pages.keys() >= {*sent, "data:,nothing"}
    assert (site.url("/private") in pages) == bool(more)
    assert len(result.failures) == (0 if more else 2)
    ended = [*result.responses, *(failure.request for failure in result.failures), *result.ends]
    assert keys(each.meta for each in ended) == set()
    # What was granted is for the wire, which takes it off behind all others.
    granted = [meta for url, meta in pages.items() if not url.endswith("/robots.txt")]
    assert keys(granted) <= {TICKET_KEY}
    assert not any(TICKET_KEY in meta and meta[TICKET_KEY][0] is None for meta in granted)
