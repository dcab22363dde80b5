"""Looks robots.txt up for requests in the scheduler: a bounded number at a time.

A coroutine that is handed to an event loop has not begun yet, so look-ups are counted here when
they are handed over, and not when they begin: at most twice REP_CONCURRENT_FETCHES are under way,
beside those whose site is slow, or that wait for another worker. Of all other origins only the name
is kept. When there is room, the queue is asked for the request to look up with.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from scrapy.utils.defer import deferred_from_coro

from scrapy_rep.exceptions import CrawlClosingError
from scrapy_rep.utils.concurrency import trap_cancelled

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.decision.decider import Decider
    from scrapy_rep.protocol.origin import Origin

logger = logging.getLogger(__name__)


class LookUps:
    """The origins whose robots.txt is to be looked up, and those for which this is under way.

    ``head`` returns a request of an origin that waits, or None if there is none any more. ``ended``
    is called with each origin whose look-up has ended.
    """

    def __init__(
        self,
        crawler: Crawler,
        cache: Cache,
        decider: Decider,
        head: Callable[[Origin], Request | None],
        ended: Callable[[Origin], None],
    ) -> None:
        self._crawler = crawler
        self._cache = cache
        self._decider = decider
        self._head = head
        self._ended = ended
        self._asked: set[Origin] = set()
        """Origins that are to be looked up, and those for which this is under way."""
        self._pending: deque[tuple[Origin, Request | None]] = deque()
        """The former, in the order of asking; with a request where no queue holds one."""
        self._handed_over = 0
        """Look-ups that have not begun, of those under way."""
        self._results: dict[Origin, Entry | None] = {}
        """What look-ups came to that the cache does not hold; None after an error."""
        self._is_beginning = False

    @property
    def has_room(self) -> bool:
        """Whether a look-up that is added now would begin soon."""
        return not self._pending and self._may_begin

    def add(self, origin: Origin, request: Request | None = None) -> None:
        """Look ``origin`` up when there is room, with ``request`` if no queue has one."""
        if origin not in self._asked:
            self._asked.add(origin)
            self._pending.append((origin, request))

    def begin(self) -> None:
        """Begin look-ups, as many as there is room for."""
        engine = self._crawler.engine
        if self._is_beginning or engine is None or engine.paused:
            return
        self._is_beginning = True
        try:
            while self._pending and self._may_begin:
                if self._cache.closing:
                    return
                origin, request = self._pending.popleft()
                try:
                    request = request or self._head(origin)
                except Exception:
                    # As after an error of a look-up.
                    logger.exception("Error while reading a request to %s", origin)
                    request, self._results[origin] = None, None
                if request is None:
                    self._asked.discard(origin)
                    self._ended(origin)
                    continue
                self._handed_over += 1
                task = deferred_from_coro(self._look_up(origin, request))
                task.addErrback(trap_cancelled)
        finally:
            self._is_beginning = False

    @property
    def _may_begin(self) -> bool:
        # Between a robots.txt and its tdmrep.json the cache counts a look-up in neither.
        under_way = len(self._asked) - len(self._pending)
        cache = self._cache
        return cache.room > self._handed_over and cache.most_look_ups > under_way

    def take_result(self, origin: Origin) -> tuple[bool, Entry | None]:
        """Return whether ``origin`` was looked up and is not in the cache, and the result.

        Only once: then it is to be looked up again.
        """
        return origin in self._results, self._results.pop(origin, None)

    def close(self) -> None:
        """Begin no more."""
        self._pending.clear()

    async def _look_up(self, origin: Origin, request: Request) -> None:
        self._handed_over -= 1
        entry = None
        try:
            entry = await self._decider.look_up(request)
        except CrawlClosingError:
            return
        except Exception:
            # The middleware meets the same error, and drops the request for it.
            logger.exception("Error while looking up robots.txt of %s", origin)
        finally:
            self._asked.discard(origin)
            if not self._cache.closing:
                known = self._cache.known_entry(origin)
                if known is None or self._decider.lacks_tdmrep(origin, lambda: request):
                    self._results[origin] = entry
                self._ended(origin)
        self.begin()
