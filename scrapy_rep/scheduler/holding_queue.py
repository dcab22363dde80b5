"""What the queues have in common: they hold requests as long as the admission requires.

Before a request leaves, ``Admission.admit`` is called. If the request may not leave, it waits until
the time that the admission has returned, or until that calls ``hold_changed`` with the origin.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.admission.admission import Admission
from scrapy_rep.admission.reason import Hold, Queue
from scrapy_rep.admission.ticket import Source, store_source
from scrapy_rep.admission.waiting import Waiting
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.scrapy_internals import wake_engine
from scrapy_rep.utils.text import printable_request

K = TypeVar("K", bound=Hashable)


class HoldingQueue(Queue, Generic[K]):
    """Base class: a queue whose keys wait, which are lanes, or origins in Redis.

    It attaches itself to the admission. If the crawl doesn't obey robots.txt, nothing waits.
    """

    def __init__(self, crawler: Crawler, clock: Clock) -> None:
        self._crawler = crawler
        self._clock = clock
        self._waiting: Waiting[K] = Waiting(clock, self._wake)
        self._woken: deque[K] = deque()
        """Keys whose wait has ended since the last pop."""
        self._admission = Admission.of(crawler)
        self._timeout = 0.0 if self._admission is None else self._admission.defer_timeout
        if self._admission is not None:
            self._admission.attach(self)

    def __len__(self) -> int:
        """Return the number of requests; 0 if all are deferred, so that ``spider_idle`` is sent."""
        idle = self._admission and self._admission.idle
        return 0 if idle and idle.counts_as_empty(self.count_deferred()) else self._count()

    @abstractmethod
    def _count(self) -> int:
        """Return the number of requests."""

    def hold_changed(self, origin: Origin) -> None:
        self._waiting.hold_changed(origin)

    def _wake(self, keys: list[K]) -> None:
        self._woken += keys
        wake_engine(self._crawler)

    @property
    def _has_room_for_lookups(self) -> bool:
        return self._admission is None or self._admission.lookups.has_room

    def _origin(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt governs ``request``; None if none, or on an error."""
        if self._admission is None:
            return None
        try:
            return self._admission.decider.origin_governing(request)
        except Exception as error:  # noqa: BLE001 - the middleware gets it, and drops the request
            what = "Error while asking what governs %s"
            log_queue_error(self._crawler, error, what, printable_request(request))
            return None

    def _hold(self, origin: Origin | None, head: Callable[[], Request]) -> Hold | None:
        """Return why the next request of ``origin``, that of ``head``, waits; None: it leaves."""
        if origin is None or self._admission is None:
            return None
        return self._admission.admit(origin, head)

    def _request_pushed(self) -> None:
        if self._admission is not None:
            self._admission.idle.request_pushed()

    def _request_leaves(self, request: Request, source: Source) -> Request:
        """Tell the admission, if any, that ``request`` leaves; return it, with its ``source``."""
        if self._admission is not None:
            self._admission.idle.request_popped(source)
            store_source(request, source)
        return request

    def _look_up(self) -> None:
        """Begin pending lookups."""
        if self._admission is not None:
            self._admission.lookups.begin()

    def _count_as_deferred(self, requests: int) -> None:
        if requests:
            stats.count(self._crawler, stats.DEFERRED, requests)


def log_queue_error(crawler: Crawler, error: BaseException, message: str, subject: object) -> None:
    """Log ``message``, formatted with ``subject``, and the traceback of ``error``; count it."""
    stats.count(crawler, stats.QUEUE_ERRORS)
    LimitedLogger(__name__, crawler).error(message, subject, exc_info=error)
