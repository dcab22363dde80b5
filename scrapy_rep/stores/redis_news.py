"""News of origins that are back, or gone, from worker to worker: where Redis is the store."""

from __future__ import annotations

import logging
from contextlib import closing
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.stores.redis_client import ERRORS, Connector
from scrapy_rep.utils.concurrency import in_thread, poster

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)

_LOOK: Final = 1.0
"""Seconds between two looks whether the crawl is over."""
_PAUSE: Final = 1.0
"""Seconds from the first failure to the next try to connect, doubling."""
_PAUSE_MAX: Final = 60.0
_QUIET: Final = 30.0
"""Seconds without a word after which the server is asked for one, at each look."""
_UNANSWERED: Final = 5
"""How often it may leave that unanswered. What lies between may drop a connection without a word,
and often does where it is not used for minutes."""
_ERRORS: Final = (*ERRORS, ValueError)
"""What a call may raise: a ValueError where another thread has just closed the connection."""
_MAX_MESSAGE: Final = 1_000
"""Bytes of a message that is read."""


class RedisNews:
    """One channel, named as the keys of the store are.

    Nothing waits for it, and nothing is lost with it but the time: who hears of nothing looks when
    the next try is due. What comes from it is not trusted: it says no more than where to look.
    """

    def __init__(self, uri: str, *, prefix: str, timeout: float) -> None:
        """Take a URI. Raises ValueError where redis-py can't read it."""
        self._connector = Connector(uri, timeout=timeout, ping_after=_QUIET)
        self._channel = f"{prefix}news"
        self._end = Event()

    async def tell(self, origin: str, at: float) -> None:
        """Tell all workers that there is a record of ``origin`` from time ``at``."""
        await in_thread(partial(self._publish, f"{at!r} {origin}"))

    def listen(self, heard: Callable[[Origin, float], None]) -> None:
        """Call ``heard`` with what is told, in this very thread, until ``close``."""
        self._end = Event()
        post = poster()
        Thread(
            target=self._listen,
            args=(lambda *news: post(partial(heard, *news)), self._end),
            name="robots.txt-news",
            daemon=True,
        ).start()

    def close(self) -> None:
        """Listen no more."""
        self._end.set()

    def _publish(self, message: str) -> None:
        try:
            self._connector.client().publish(self._channel, message)
        except _ERRORS as error:
            logger.debug("Redis told nobody %a: %s", message, self._connector.told(error))

    def _listen(self, heard: Callable[[Origin, float], object], end: Event) -> None:
        pause, is_told = _PAUSE, False
        while not end.is_set():
            try:
                channel = self._connector.client().pubsub(ignore_subscribe_messages=True)
                with closing(channel):
                    channel.subscribe(self._channel)
                    while not end.is_set():
                        news = _read(channel.get_message(timeout=_LOOK))
                        pause = _PAUSE
                        if news is not None:
                            heard(*news)
                        if channel.health_check_response_counter > _UNANSWERED:
                            raise TimeoutError("the server is silent")
            except _ERRORS as error:  # noqa: PERF203 - one a minute
                self._connector.close()  # the nodes of a cluster are asked for again
                if not is_told:
                    is_told = True
                    logger.info(
                        "Redis can't tell of sites that are back, which are noticed at their next "
                        "try: %s",
                        self._connector.told(error),
                    )
                end.wait(pause)
                pause = min(_PAUSE_MAX, 2 * pause)
            except RuntimeError:  # an event loop that has been closed
                return


def _read(message: dict[str, Any] | None) -> tuple[Origin, float] | None:
    """Return of which origin there is a record, and from when; None where nothing says so."""
    data = None if message is None else message["data"]
    if not isinstance(data, bytes) or len(data) > _MAX_MESSAGE:
        return None
    try:
        at, _, origin = data.decode().partition(" ")
        return origin_of(origin), float(at)
    except ValueError:
        return None
