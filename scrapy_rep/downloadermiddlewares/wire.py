"""The wire: the last check of a request, when it is handed to its download handler.

A request may have waited in other middlewares and in its download slot since it was allowed, and a
signal handler may have changed it there. Here, the request is decided again if its decision is not
valid any longer, or its ticket is missing. If its host has a delay or a pause, the admission is
asked again. A request that has to wait for more than two seconds is given back, so that it waits
where all others wait; for a lookup only once, as its result may expire before it comes again. For
all other requests, the check takes about a microsecond.

Scrapy has no public hook here. If a version of Scrapy has no place for it, the middleware closest
to the downloader makes the check.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.ticket import TICKET_KEY, Grant, grant_of
from scrapy_rep.downloadermiddlewares.decide_again import DecideAgain
from scrapy_rep.downloadermiddlewares.waiting_requests import WaitingRequests
from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.fetch.transfer import TRANSFER_KEY
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.concurrency import within
from scrapy_rep.utils.scrapy_internals import wrap_downloads

_LONGEST: Final = 2.0
"""Maximum seconds for which a request waits here."""


class GivenBackError(Exception):
    """Raised in place of sending a request, which goes back to the scheduler instead."""

    def __init__(self, request: Request) -> None:
        super().__init__(f"{request} is given back")
        self.request: Request = request
        """The copy of the request for the scheduler."""


class Wire:
    """Checks each request just before it is sent, and tells the admission how it ended."""

    def __init__(
        self,
        admission: Admission,
        waiting: WaitingRequests,
        again: DecideAgain,
        give_back: Callable[[Request], Request],
        clock: Clock,
    ) -> None:
        """``give_back`` returns the copy of a request for the scheduler.

        While the crawl closes it raises the exception that drops the request, if no scheduler
        stores it.
        """
        self._admission = admission
        self._read_pauses = admission.hosts.read_pauses
        self._paused_hosts = admission.paused_hosts
        self._waiting = waiting
        self.again: DecideAgain = again
        self._tokens_of = again.decider.tokens.of_sent_request
        self._give_back = give_back
        self._time = clock.time
        self._monotonic = clock.monotonic
        self.is_installed: bool = False
        """Whether ``download`` is called for each request. If not, the middleware closest to the
        downloader calls ``enter`` and ``leave``."""
        self._sent: dict[Request, float] = {}
        """When each request was sent that ``enter`` was called for, and has not ended."""

    def install(self, crawler: Crawler) -> None:
        """Call ``download`` in place of download handlers, if Scrapy has a place for it."""
        self.is_installed = wrap_downloads(crawler, self.download)

    async def download(
        self, request: Request, download: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Check ``request`` as ``enter`` does, unless it is for a robots.txt; call ``download``."""
        if TRANSFER_KEY in request.meta:
            return await download(request)
        reading = self._read_pauses()
        if reading is not None or not self._may_pass(request):
            await self._wait_until_admitted(request, reading)
        request.meta.pop(TICKET_KEY, None)
        sent_at = self._monotonic()
        response: Response | None = None
        try:
            response = await download(request)
            return response
        finally:
            self._admission.ended(request, sent_at, response)

    async def enter(self, request: Request) -> None:
        """Return when ``request`` may be sent; it must be sent then, and ``leave`` called after it.

        Called if ``download`` could not be installed. Raises GivenBackError if the request goes
        back to the scheduler, and RobotsTxtDisallowed if it is dropped. The ticket is removed.
        """
        await self._wait_until_admitted(request, self._read_pauses())
        request.meta.pop(TICKET_KEY, None)
        self._sent[request] = self._monotonic()

    def leave(self, request: Request, response: Response | None, *, unsent: bool) -> None:
        """Tell the admission how ``request`` ended, if ``enter`` was called. None is an error.

        A request that has its ticket still was ended by another middleware. Its turn is given back
        if it is ``unsent``: it came from a cache, or was dropped. Others, such as a middleware with
        a browser, may have sent it.
        """
        if request.meta.pop(TICKET_KEY, None) is not None and unsent:
            self._admission.undo_leave(request)
        sent_at = self._sent.pop(request, None) if self._sent else None
        if sent_at is not None:
            self._admission.ended(request, sent_at, response)

    def _may_pass(self, request: Request) -> bool:
        """Return whether ``request`` has a valid grant and no reason can hold it: most often so."""
        ticket = request.meta.get(TICKET_KEY)
        if not isinstance(ticket, tuple):
            return False
        # The fields of a Grant, which is not made here to save time.
        url, tokens, end, terms, _ = ticket
        return (
            url == request.url
            and (tokens is None or tokens == self._tokens_of(request))
            and self._time() < end
            and not terms
            and not self._paused_hosts
        )

    async def _wait_until_admitted(self, request: Request, reading: Awaitable[None] | None) -> None:
        """Return when ``request`` may be sent, after ``reading``; else raise, and end its lease."""
        if reading is not None:
            await reading
        try:
            await self._admit(request, self._monotonic() + _LONGEST)
        except BaseException:
            # The request may have the lease of its host already, and is not sent.
            self._admission.ended(request, self._monotonic(), None)
            raise

    async def _admit(self, request: Request, latest: float) -> None:
        """Decide again if necessary, and ask the admission; give back what must wait longer."""
        while True:
            grant = grant_of(request)
            if grant is None or not self._is_valid(request, grant):
                returned = await self._decide_again(request, grant, latest)
                if returned is not None:
                    raise GivenBackError(returned)
                grant = grant_of(request)
            origin = None if grant is None else self._admission.origin_to_ask(request, grant)
            if grant is None or origin is None:  # no robots.txt applies, or no reason can hold it
                return
            hold = await self._admission.admit_to_wire(request, origin, grant.terms)
            if hold is None:
                if self._time() < grant.end:  # the store may have answered late
                    return
                continue
            if hold.until > latest:
                raise GivenBackError(self._give_back(request))
            try:
                await self._waiting.wait_at_wire(origin, hold)
            except CrawlClosingError:
                raise GivenBackError(self._give_back(request)) from None

    async def _decide_again(
        self, request: Request, grant: Grant | None, latest: float
    ) -> Request | None:
        """Decide again; return the copy for the scheduler if that takes longer than ``latest``.

        Only once, and only a request that was decided on: a subclass may exempt others, slowly.
        """
        if grant is None or grant.returned:
            return await self.again.decide_as_sent(request)
        try:
            seconds = max(0.0, latest - self._monotonic())
            returned = await within(seconds, self.again.decide_as_sent(request))
        except TimeoutError:  # a lookup takes longer, or the next try is later
            return self._give_back(request)
        if returned is None and grant_of(request) is None and self._monotonic() >= latest:
            return self._give_back(request)  # a subclass has caught the end of the time
        return returned

    def _is_valid(self, request: Request, grant: Grant) -> bool:
        if grant.url != request.url or grant.end <= self._time():
            return False
        decider = self.again.decider
        return grant.tokens is None or decider.is_decision_valid(request, grant.tokens)
