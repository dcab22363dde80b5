"""REP_OVERRIDES in a crawl: which one decides, and that it is told of."""

from __future__ import annotations

import logging
from time import time
from typing import TYPE_CHECKING

from scrapy_rep import stats
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.overrides import Override, Overrides

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.verdict import Verdict
    from scrapy_rep.settings import Options
    from scrapy_rep.signals import Announcer

    Tokens = tuple[str, ...]

logger = logging.getLogger(__name__)


class Overriding:
    """Lets the entries of REP_OVERRIDES decide; each is logged at its first use, and counted."""

    def __init__(self, crawler: Crawler, options: Options, announcer: Announcer) -> None:
        try:
            self.overrides = Overrides(options.overrides, time)
        except OSError as error:
            raise SettingsError(f"REP_OVERRIDES names a file that can't be read: {error}") from None
        self._crawler = crawler
        self._announcer = announcer
        self._used: set[Override] = set()

    def decides(self, origin: Origin) -> bool:
        """Return whether no robots.txt is needed for ``origin``."""
        if not self.overrides:
            return False
        override = self.overrides.of(origin.host)
        return override is not None and not override.tokens

    def tokens(self, origin: Origin) -> Tokens:
        """Return the tokens by which ``origin`` is to be asked; none where an override has none."""
        override = self.overrides.of(origin.host) if self.overrides else None
        return () if override is None else override.tokens

    def decide(
        self, request: Request, origin: Origin, target: str, tokens: Tokens, *, again: bool
    ) -> tuple[Verdict | None, Tokens]:
        """Return what an override decides, if it does, and the tokens that count.

        ``again`` says that the request has been here before, and was given back to the scheduler.
        """
        override = self.overrides.of(origin.host)
        self.warn_of_expired()
        if override is None:
            return None, tokens
        if not (again and override.tokens):
            self._tell(request, override)
        tokens = override.tokens or tokens
        return self.overrides.verdict(override, target, tokens), tokens

    def _tell(self, request: Request, override: Override) -> None:
        stats.count(self._crawler, stats.OVERRIDE_COUNT.format(policy=override.policy))
        if override not in self._used:
            self._used.add(override)
            logger.info(
                "Override in use: %a", str(override), extra={"spider": self._crawler.spider}
            )
        self._announcer.overridden(request, override)

    def warn_of_expired(self) -> None:
        """Warn once of each entry whose time is over."""
        while self.overrides.expired:
            override = self.overrides.expired.pop()
            logger.warning(
                "Override expired at %s, robots.txt is obeyed again: %a",
                override.until_text,
                str(override),
                extra={"spider": self._crawler.spider},
            )
