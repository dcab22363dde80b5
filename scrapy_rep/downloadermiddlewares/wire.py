"""The wire: the last check of a request, when it is handed to its download handler.

A request passes if its ticket fits what is sent, nothing can hold it, and a place is free: there
are as many as CONCURRENT_REQUESTS, and for each download slot as many as its limit. (With asyncio,
Scrapy's slots let more pass.) If the ticket does not fit, the gate is asked a second time. What
would wait here for more than two seconds for a lookup, a delay or a pause goes back to the queue:
for a lookup, if it had a ticket, or a delay once, as a middleware may change the request, or take
its turn, each time.

Scrapy has no public hook here. If a downloader has no place for it, no page is fetched.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from twisted.web.client import ResponseFailed

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.hold import IN_DELAY, Hold
from scrapy_rep.admission.pauses import PAUSE_STATUSES
from scrapy_rep.admission.ticket import TICKET_KEY, Source, Ticket, ticket_of
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.downloadermiddlewares.waits import Places
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.fetch.local_errors import (
    causes_of,
    download_again,
    download_with_files,
    lacks_files,
)
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.utils.concurrency import Clock, within
from scrapy_rep.utils.download_slots import SLOT_KEY, concurrency_of_slot
from scrapy_rep.utils.requests import host_of, origin_of_request
from scrapy_rep.utils.scrapy_internals import Download, wrap_downloads

_READING: Final = 1.0
"""Maximum seconds for which the opening of the spider waits for the pauses."""
_LONGEST: Final = 2.0
"""Seconds after which what waits here for a lookup, a delay or a pause goes back the first time."""
_DECISIONS: Final = 4
"""A decision may expire while its request waits for a place. Every fourth one is made while the
request keeps its place."""
_IN_PLACE: Final = 0.5
"""Maximum seconds for which it keeps it the first time; each further time it is twice as long."""


class GivenBackError(Exception):
    """Raised in place of sending a request, which goes back to the scheduler instead."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request} is given back")
        self.request: Request = request
        """The copy of the request for the scheduler."""


class Wire:
    """Checks each request just before it is sent, and tells the admission how it ended."""

    def __init__(self, crawler: Crawler, admission: Admission, gate: Gate, clock: Clock) -> None:
        self._crawler = crawler
        self._hosts = admission.hosts
        self._paused = admission.hosts.paused
        self.gate: Gate = gate
        self._tokens_of = gate.decider.tokens.of_sent_request
        self._time = clock.time
        self._monotonic = clock.monotonic
        most = crawler.settings.getint("CONCURRENT_REQUESTS")
        self._places: Places[str] = Places(
            partial(concurrency_of_slot, crawler), most if most > 0 else math.inf
        )
        self.is_installed: bool = False
        """Whether ``download`` is called for each request."""

    async def install(self) -> None:
        """Read the pauses of other workers; call ``download`` in place of download handlers.

        Raises IgnoreRequest if the downloader has no place for it.
        """
        with suppress(TimeoutError):  # a store that hangs doesn't hold up the crawl
            await within(_READING, self._hosts.read_pauses())
        self.is_installed = self.is_installed or wrap_downloads(self._crawler, self.download)
        if not self.is_installed:
            raise IgnoreRequest("the downloader has no download_request_async")

    async def download(self, request: Request, download: Download) -> Response:
        """Call ``download`` when ``request`` may be sent, at once if it is for a robots.txt."""
        meta = request.meta
        if TRANSFER_KEY in meta:
            return await download_with_files(self._crawler, download, request)
        slot: str = meta.get(SLOT_KEY, "")
        sent_at: float | None = None
        response: Response | None = None
        try:
            ticket: Any = meta.get(TICKET_KEY)
            fits = self._is_valid(request, ticket) and not ticket[3]  # the delay
            is_paused = self._paused and host_of(request) in self._paused
            if not fits or is_paused or not self._places.take(slot):
                await self._admit(request, slot)
            ticket = meta.pop(TICKET_KEY, None)
            sent_at = self._monotonic()
            try:
                response = await download(request)
            except Exception as error:
                response = _response_in(error, request)
                if not lacks_files(error):
                    raise
                again = partial(self._download_again, download) if ticket else download
                response = await download_again(self._crawler, again, request)
            finally:
                self._places.leave(slot)
            return response
        finally:  # also if it is not sent: it may have the lease of its host
            if response and response.status in PAUSE_STATUSES and response.url != request.url:
                response = self._note_redirected(request, sent_at, response)
            self._hosts.ended(request, sent_at, response)

    def _note_redirected(
        self, request: Request, sent_at: float | None, response: Response
    ) -> Response:
        """Tell the hosts of a refusal by another host, to which a browser was redirected.

        Return what is left for the host of ``request``.
        """
        with suppress(ValueError):  # a URL that nothing is fetched from
            other = Request(response.url, meta=request.meta)
            if host_of(other) != host_of(request):
                self._hosts.ended(other, sent_at, response)
                return Response(request.url)
        return response

    async def _download_again(self, download: Download, request: Request) -> Response:
        # Nothing was sent yet. In a pause that has begun since, only the probe may be.
        host = self._paused.get(host_of(request))
        if host and host.under_way is not request and self.gate.decider.origin_governing(request):
            raise GivenBackError(self.gate.give_back(request, Source.WIRE))
        return await download(request)

    def discard_ticket(self, request: Request, *, unsent: bool) -> None:
        """Take the ticket of a request that another middleware has answered, or dropped.

        Its turn is given back if it is ``unsent``: it came from a cache, or was dropped.
        """
        if request.meta.pop(TICKET_KEY, None) is not None and unsent:
            self._hosts.undo_reserve(host_of(request))

    def _is_valid(self, request: Request, ticket: tuple[Any, ...] | None) -> bool:
        if ticket is None:
            return False
        url, tokens, end, _, _, _ = ticket
        is_decided = url == request.url and self._time() < end
        return is_decided and (tokens is None or tokens == self._tokens_of(request))

    async def _admit(self, request: Request, slot: str) -> None:
        """Return when ``request`` may be sent; else raise, without a place.

        Ask the gate if the ticket is not valid; wait for a place; ask the hosts. When it returns,
        the request has its place, and its turn where there is a delay or a pause, and the ticket is
        still valid.
        """
        deadline, decided, hold = self._monotonic() + _LONGEST, 0, None
        while True:
            ticket = ticket_of(request)
            # What its host holds is decided on again when it may be sent, not each time it asks.
            asks = hold is None and not self._is_valid(request, ticket)
            decided += asks
            in_place = asks and decided % _DECISIONS == 0
            if asks and (not in_place or host_of(request) in self._paused):
                await self._ask_gate(request, ticket, deadline)
                ticket = ticket_of(request)
            began = self._monotonic()
            await self._places.wait(slot)
            if ticket is None:  # a subclass let it pass
                return
            deadline += self._monotonic() - began
            try:
                if in_place:
                    await self._ask_gate_in_place(request, ticket, deadline, decided)
                    if (ticket := ticket_of(request)) is None:
                        return
                # Waiting for the place, or the store, may have taken too long.
                if hold is not None or self._is_valid(request, ticket):
                    hold = await self._ask_hosts(request, ticket.delay)
                    if hold is None and (in_place or self._is_valid(request, ticket)):
                        return
            except BaseException:
                self._places.leave(slot)
                raise
            self._places.leave(slot)
            if hold is not None:
                decided = _DECISIONS - 1  # the next one is made in its place
                await self._wait(request, ticket, hold, deadline)

    async def _ask_hosts(self, request: Request, delay: float) -> Hold | None:
        """Return why ``request`` may not be sent now, or None: then it has the lease it needs."""
        if not delay and host_of(request) not in self._paused:
            return None
        # Where no robots.txt decides, by an override or a meta key, no pause holds.
        find = origin_of_request if delay else self.gate.decider.origin_governing
        origin = find(request)
        return None if origin is None else await self._hosts.acquire(origin, request, delay)

    async def _ask_gate(self, request: Request, ticket: Ticket | None, deadline: float) -> None:
        """Let the gate give a new ticket, or raise GivenBackError."""
        for _ in range(2):  # a subclass may take long, and robots.txt expire meanwhile
            await self._ask_once(request, ticket, deadline)
            new = ticket_of(request)
            if new is None or self._is_valid(request, new):
                return
        self.gate.drop_after_error(request, ValueError("changed or delayed after the decision"))
        del request.meta[TICKET_KEY]  # a dry run

    async def _ask_once(self, request: Request, ticket: Ticket | None, deadline: float) -> None:
        """Let the gate give a ticket, which may have expired when it comes.

        What takes long is given back, too, but only once, and only if it was decided on before: a
        subclass may exempt others, which have no ticket, slowly.
        """
        may_take_long = ticket is None or ticket.was_given_back
        source = Source(ticket.source) if ticket else Source.WIRE
        # Without a User-Agent no product tokens are sent, but those of ROBOTSTXT_USER_AGENT count.
        has_agent = b"User-Agent" in request.headers
        if not has_agent:
            request.headers[b"User-Agent"] = b""
        answer: Awaitable[Request | None] = self.gate.again(request, Source.WIRE)
        if not may_take_long:
            answer = within(max(0.0, deadline - self._monotonic()), answer)
        try:
            returned = await answer
        except TimeoutError:  # a lookup takes longer, or the next try is later
            returned = self.gate.give_back(request, source)
        finally:
            if not has_agent:
                del request.headers[b"User-Agent"]
        if returned is not None:
            if not has_agent:
                returned.headers.pop(b"User-Agent", None)
            raise GivenBackError(returned)

    async def _ask_gate_in_place(
        self, request: Request, ticket: Ticket, deadline: float, decided: int
    ) -> None:
        """Let the gate give a new ticket, the ``decided``-th, in a time that doubles each time."""
        if self._is_valid(request, ticket) or host_of(request) in self._paused:
            return
        try:
            seconds = _IN_PLACE * 2 ** (decided // _DECISIONS - 1)
            await within(seconds, self._ask_gate(request, ticket, deadline))
        except TimeoutError:
            request.meta[TICKET_KEY] = tuple(ticket)  # which has expired

    async def _wait(self, request: Request, ticket: Ticket, hold: Hold, deadline: float) -> None:
        """Wait until ``hold`` may have changed; raise GivenBackError if that takes too long."""
        # A middleware may send a request to the host each time.
        stays = ticket.was_given_back and hold.reason is IN_DELAY
        source = Source(ticket.source)
        with suppress(CrawlClosingError):
            if stays or hold.until <= deadline:
                await self.gate.waits.wait(origin_of_request(request), hold, source)
                return
        raise GivenBackError(self.gate.give_back(request, source))


def _response_in(error: Exception, request: Request) -> Response | None:
    """Return the response of StopDownload, or one that HTTP/1.1 has cut short; else None."""
    for cause in causes_of(error):
        found = getattr(cause, "response", None)
        if isinstance(found, Response):
            return found
        if isinstance(cause, ResponseFailed) and found is not None:
            return Response(request.url, found.code, dict(found.headers.getAllRawHeaders()))
    return None
