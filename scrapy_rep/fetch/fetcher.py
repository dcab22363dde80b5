"""Fetches robots.txt: follows redirects, limits size and time, and returns the outcome.

The requests pass the downloader middlewares, which set the proxy and the User-Agent as for pages.
No middleware must retry, cache, redirect or render robots.txt: meta keys disable most of them, and
``RobotsTxtFetchMiddleware`` removes what the others have changed.
"""

import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Final

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import StopDownload
from scrapy.http.request import NO_CALLBACK
from twisted.internet.defer import CancelledError

from scrapy_rep import stats
from scrapy_rep.fetch.errors import (
    FetchError,
    InterferenceError,
    cause_of,
    sanitised_message,
    short_cause,
)
from scrapy_rep.fetch.is_from_origin import (
    RouteFailure,
    mitigation_in,
    route_failure_in_answer,
    route_failure_in_error,
)
from scrapy_rep.fetch.redirects import Chain, location_of
from scrapy_rep.fetch.transfer import TRANSFER_KEY, Answer, Received, Transfer
from scrapy_rep.protocol.html_pages import is_html, unwrap
from scrapy_rep.protocol.lexer import has_known_line, is_robotstxt
from scrapy_rep.protocol.limits import MAX_REDIRECTS
from scrapy_rep.protocol.origin import DEFAULT_PORTS, Origin, origin_of
from scrapy_rep.protocol.outcome import (
    DNS_ERROR,
    Available,
    Outcome,
    Unavailable,
    Unreachable,
    outcome_of,
)
from scrapy_rep.protocol.verdict import UNKNOWN_RULES, Reason, Verdict
from scrapy_rep.settings import (
    MAX_TRANSFER,
    Options,
    can_be_stopped,
    default_download_timeout,
    retry_times,
)
from scrapy_rep.utils.bounded import Once
from scrapy_rep.utils.concurrency import sleep, within
from scrapy_rep.utils.download_slots import SLOT_KEY, SUCCESSOR_KEY
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.scrapy_internals import download_without_engine

_LATER: Final = 1.0
"""Seconds by which ``download_timeout`` is longer than the fetcher's own time limit."""
_SHOWN: Final = 20
"""Number of bytes that are logged of a text that is no robots.txt."""
_DNS_PAUSE: Final = 1.0
"""Seconds between two tries after a DNS error."""


@dataclass(eq=False, repr=False)
class Fetcher:
    """Fetches with the proxy, User-Agent and bind address of the request that waits."""

    crawler: Crawler
    options: Options
    verdict_on: Callable[[Request, Origin], Coroutine[Any, Any, Verdict | None]]
    """Called with a request for the target of a redirect, and the file's origin."""

    def __post_init__(self) -> None:
        self._logger = LimitedLogger(__name__, self.crawler)
        self._in_flight = 0
        self._warned = Once()
        settings = self.crawler.settings
        self._stoppable = {scheme: can_be_stopped(settings, scheme) for scheme in DEFAULT_PORTS}
        self._retries = retry_times(settings)

    async def fetch(self, origin: Origin, page: Request) -> Outcome:
        """Fetch the robots.txt of ``origin``; return and count the outcome; log a failed route.

        ``page`` is the request that waits for the file. Only CancelledError is raised.
        """
        of_pages = default_download_timeout(self.crawler)
        seconds = min(self.options.timeout, of_pages or self.options.timeout)
        chain = Chain(origin, monotonic() + seconds)
        try:
            with self._size_limit():
                outcome = await within(seconds, self._try(chain, page))
        except TimeoutError as error:
            outcome = self._outcome_of_error(chain, error, f"timed out after {seconds:g} s")
        if isinstance(outcome, Available):
            outcome = self._unwrap_html(origin, outcome)
        evidence = outcome.evidence
        if evidence.status is not None:
            self._count(stats.RESPONSE_COUNT)
            self._count(stats.RESPONSE_STATUS_COUNT.format(status=evidence.status))
        self._count(stats.REDIRECT_COUNT, len(evidence.hops))
        self._count(stats.RESPONSE_BYTES, evidence.size)
        self._count(stats.OUTCOME_COUNT.format(kind=outcome.kind.value))
        if isinstance(outcome, Unreachable):
            cause = short_cause(evidence.summary)
            self._count(stats.UNREACHABLE_COUNT.format(cause=cause))
        return outcome

    async def _try(self, chain: Chain, page: Request) -> Outcome:
        """Return the outcome; after a DNS error, of as many tries as Scrapy makes for a page."""
        for retries in range(self._retries, -1, -1):
            self._count(stats.REQUEST_COUNT)
            began = monotonic()
            outcome = await self._follow_redirects(chain, page)
            again = 2 * monotonic() - began + _DNS_PAUSE  # when another try may have ended
            if not retries or outcome.evidence.error != DNS_ERROR or again > chain.deadline:
                break
            await sleep(_DNS_PAUSE)
        return outcome

    async def _follow_redirects(self, chain: Chain, page: Request) -> Outcome:
        while True:
            try:
                answer = await self._download(chain, page)
                chain.check_address(answer)
                location = location_of(answer, chain.url)
                if location is not None:
                    await chain.check_redirect(location, indirect=answer.is_indirect)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - any error means that the rules are unknown
                return self._outcome_of_error(chain, error, cause_of(error))
            if location is None or len(chain.hops) >= MAX_REDIRECTS:
                return self._outcome_at_end(chain, answer, location)
            verdict = await self._verdict_on_hop(chain, location, page)
            if verdict and verdict.reason is Reason.OVERRIDE and not verdict.allowed:
                failure = RouteFailure(
                    "it is redirected to a host that REP_OVERRIDES disallows",
                    location,
                    "set REP_OVERRIDES for the site, too",
                )
                return self._report_failure(chain, failure, answer)
            # SPEC F-3 applies to rules only: without them, redirects are followed.
            if verdict and not verdict.allowed and verdict.reason not in UNKNOWN_RULES:
                message = sanitised_message(f"redirect to a disallowed URL: {location}")
                return Unavailable(chain.evidence(answer, error=message), of_origin=False)
            chain.follow(location, answer)

    async def _verdict_on_hop(self, chain: Chain, location: str, page: Request) -> Verdict | None:
        hop = Request(location, headers=_user_agent_of(page))
        # The rules may have to be read in a store. If it hangs, half of the time that is left
        # remains for the site.
        seconds = max(0.0, chain.deadline - monotonic()) / 2
        try:
            return await within(seconds, self.verdict_on(hop, chain.origin))
        except TimeoutError:
            return None

    def _outcome_at_end(self, chain: Chain, answer: Answer, location: str | None) -> Outcome:
        """Return the outcome after ``answer``; ``location`` is that of one redirect too many."""
        failure = route_failure_in_answer(answer)
        if failure is not None:
            return self._report_failure(chain, failure, answer)
        if location is not None:
            return Unavailable(chain.evidence(answer, error=f"more than {MAX_REDIRECTS} redirects"))
        refusal, mitigation = None, mitigation_in(answer.response)
        if mitigation and not has_known_line(answer.text):
            refusal = f"status {answer.response.status} ({mitigation})"
        return outcome_of(chain.evidence(answer, error=refusal), answer.text)

    def _unwrap_html(self, origin: Origin, outcome: Available) -> Available:
        """Return ``outcome``, its text without the HTML of a browser; warn of what is no rules."""
        text = unwrap(outcome.body, truncated=outcome.evidence.truncated)
        if text is not outcome.body:
            self._logger.debug(
                "robots.txt of %s is wrapped in the HTML of a browser, which is removed", origin
            )
            return replace(outcome, body=text)
        if is_html(text):
            if self._warned.add_if_new(origin):
                self._logger.warning(
                    "robots.txt of %s is an HTML page: most likely it contains no rules; if it "
                    "does, they are obeyed",
                    origin,
                )
        elif not is_robotstxt(text) and self._warned.add_if_new(origin):
            self._logger.warning(
                "robots.txt of %s has no line that can be read, and so no rules: it begins with %a",
                origin,
                text[:_SHOWN],
            )
        return outcome

    async def _download(self, chain: Chain, page: Request) -> Answer:
        request = self._build_request(chain, page)
        chain.transfer = request.meta[TRANSFER_KEY]
        try:
            await download_without_engine(self.crawler, request)
        except Received as received:
            # The traceback refers to frames, and these refer to the exception: a cycle of a hundred
            # objects, which would stay in memory until the garbage collector runs.
            received.__traceback__ = None
            return received.answer
        except CancelledError as error:
            # If this coroutine was cancelled, the error has no message. Scrapy 2.14 raises a
            # CancelledError with a message if the response is larger than download_maxsize.
            if not error.args:
                raise
            raise FetchError(str(error)) from error
        raise InterferenceError("another component answered in place of the site")

    def _outcome_of_error(self, chain: Chain, error: Exception, message: str) -> Unreachable:
        if not isinstance(error, FetchError):
            self._count(stats.EXCEPTION_COUNT.format(exception=type(error)))
        if message == DNS_ERROR and chain.hops:  # the host of the file does exist
            message += f" ({origin_of(chain.url).host})"
        failure = route_failure_in_error(error, message, chain.transfer)
        if failure is None:
            return Unreachable(chain.evidence(error=message))
        return self._report_failure(chain, failure)

    def _report_failure(
        self, chain: Chain, failure: RouteFailure, answer: Answer | None = None
    ) -> Unreachable:
        """Count and log ``failure``, the first of a kind as a warning; return the outcome."""
        self._count(stats.NOT_OF_ORIGIN_COUNT)
        self._logger.log(
            logging.WARNING if self._warned.add_if_new(failure.what) else logging.DEBUG,
            "robots.txt of %s was not fetched: %s. This is not an error of the site. Its pages are "
            "disallowed%s; %s",
            chain.origin,
            failure,
            "" if failure.permanent else " until the next try",
            failure.advice,
        )
        evidence = chain.evidence(answer, error=sanitised_message(str(failure)))
        return Unreachable(evidence, of_origin=False, permanent=failure.permanent)

    def _build_request(self, chain: Chain, page: Request) -> Request:
        url = chain.url
        origin = origin_of(url)
        slot = f"robots.txt of {chain.origin}: {url}"
        meta: dict[str, Any] = {
            "dont_obey_robotstxt": True,  # SPEC S-9
            "allow_offsite": True,
            "dont_redirect": True,
            "handle_httpstatus_all": True,
            "dont_retry": True,
            "dont_cache": True,
            "dont_merge_cookies": True,
            "autothrottle_dont_adjust_delay": True,
            # If it goes through the engine, not in the slot of the host's pages, which may wait.
            SLOT_KEY: slot,
            SUCCESSOR_KEY: slot,
            # Later than the time limit of the fetcher, whose error has a clearer message.
            "download_timeout": max(0.0, chain.deadline - monotonic()) + _LATER,
            # No limit where the fetcher stops the download itself: a larger file is cut, while
            # above download_maxsize the handler raises an error.
            "download_maxsize": 0 if self._stoppable[origin.scheme] else MAX_TRANSFER,
            "download_warnsize": 0,
            "download_fail_on_dataloss": True,
            # SPEC S-5: the user is anonymous, even if FTP_USER is set.
            "ftp_user": "anonymous",
            "ftp_password": "guest",
        }
        transfer = Transfer(same_origin=origin == chain.origin, meta=meta.copy())
        headers = _user_agent_of(page)
        # A proxy from the environment (then _scheme_proxy is set) is not copied, as
        # HttpProxyMiddleware sets it for each request.
        if "proxy" in page.meta and "_scheme_proxy" not in page.meta:
            meta["proxy"] = page.meta["proxy"]
            if "_auth_proxy" in page.meta and b"Proxy-Authorization" in page.headers:
                meta["_auth_proxy"] = page.meta["_auth_proxy"]
                headers[b"Proxy-Authorization"] = page.headers[b"Proxy-Authorization"]
        if "bindaddress" in page.meta:
            meta["bindaddress"] = page.meta["bindaddress"]
        request = Request(url, headers=headers, meta=meta, callback=NO_CALLBACK)
        transfer.url = request.url  # Scrapy may have escaped the URL
        transfer.after_service = chain.after_service
        transfer.cookie = chain.cookie_for(request)
        request.meta[TRANSFER_KEY] = transfer
        return request

    @contextmanager
    def _size_limit(self) -> Iterator[None]:
        """Stop downloads for fetches above their limit, while this or any other fetch goes on."""
        # The signal is connected only during fetches, as it costs time for every page.
        if self._in_flight == 0:
            self.crawler.signals.connect(self._bytes_received, signals.bytes_received)
        self._in_flight += 1
        try:
            yield
        finally:
            self._in_flight -= 1
            if self._in_flight == 0:
                self.crawler.signals.disconnect(self._bytes_received, signals.bytes_received)

    def _bytes_received(self, data: bytes, request: Request) -> None:
        transfer = request.meta.get(TRANSFER_KEY)
        if transfer is not None and transfer.add_received(data):
            raise StopDownload(fail=False)

    def _count(self, name: str, number: int = 1) -> None:
        if number:
            stats.count(self.crawler, name, number)


def _user_agent_of(page: Request) -> dict[bytes, Any]:
    name = b"User-Agent"
    return {name: page.headers[name]} if name in page.headers else {}
