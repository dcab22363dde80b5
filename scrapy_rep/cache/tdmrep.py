"""The cache of tdmrep.json (usage preferences of a site) in memory, and the lookups of the file."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from scrapy import Request

from scrapy_rep.cache.entry import Entry, Validity
from scrapy_rep.cache.lookup_limit import Permit
from scrapy_rep.cache.records import LookupContext, Records
from scrapy_rep.cache.shared_lookups import Done, SharedLookups
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.outcome import Unavailable
from scrapy_rep.protocol.policy import Access
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH, TdmRules
from scrapy_rep.utils.lru import BoundedCache

_DISALLOWED: Final = TdmRules.unread(f"robots.txt disallows {TDMREP_PATH}")
_NOT_USED: Final = TdmRules(b"[]")
_NONE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)


class _Entry(Validity):
    """The rules of a tdmrep.json, and between which times they are valid."""

    __slots__ = ("rules",)

    def __init__(self, rules: TdmRules, access: Access) -> None:
        super().__init__(access, unused=True)
        self.rules = rules


class TdmrepCache:
    """Returns the rules in the tdmrep.json of origins from memory, or after a lookup.

    Lookups are as for robots.txt. But if tdmrep.json is unreachable, pages may be fetched: only its
    rules are unknown until the next try.
    """

    def __init__(self, context: LookupContext, max_bytes: float) -> None:
        self._policy = context.policy
        self._time = context.clock.time
        self._records = Records(context, TDMREP_PATH, self.known_rules, count=lambda _: None)
        self._entries: BoundedCache[Origin, _Entry] = BoundedCache(max_bytes=max_bytes)
        self._lookups: SharedLookups[TdmRules] = SharedLookups(
            self._look_up, self._store_fetched, context.limit
        )

    def known_rules_for_pages(
        self, origin: Origin | None, entry: Entry, tokens: Tokens
    ) -> TdmRules | None:
        """Return the rules for the pages of ``origin``; None if a lookup is necessary.

        ``entry`` has the rules in the robots.txt of ``origin``. If these disallow tdmrep.json, the
        file is not fetched, and the result means that its rules are unknown.
        """
        if origin is None or origin.scheme == "ftp":
            return _NOT_USED
        verdict = entry.verdict(TDMREP_PATH, tokens)
        if verdict is not None and not verdict.allowed:
            return _DISALLOWED
        entry.tdmrep = found = self._known(origin)
        return None if found is None else found.rules

    def known_rules(self, origin: Origin) -> TdmRules | None:
        """Return the valid rules of ``origin`` in memory; None if there are none."""
        found = self._known(origin)
        return None if found is None else found.rules

    def _known(self, origin: Origin) -> _Entry | None:
        found = self._entries.get(origin)
        return found if found is not None and found.is_valid(self._time()) else None

    async def rules(self, origin: Origin, tokens: Tokens, page: Request) -> TdmRules:
        """Look up ``origin``; return its rules. Raises CrawlClosingError if the crawl closes."""
        return await self._lookups.result(origin, tokens, page)

    def start_lookup(
        self, origin: Origin, tokens: Tokens, page: Request, done: Done[TdmRules]
    ) -> None:
        """Look up ``origin``, and call ``done`` with its rules, or with None and the error.

        Raises CrawlClosingError if the crawl is closing.
        """
        self._lookups.join_or_start(origin, tokens, page, done)

    def close(self) -> None:
        """Cancel all lookups. In the requests that wait for them, CrawlClosingError is raised."""
        self._lookups.close()

    async def finish(self) -> None:
        """Wait until all records are stored."""
        await self._lookups.finish()
        await self._records.finish()

    async def _look_up(
        self, origin: Origin, _: Tokens, page: Request, permit: Permit | None
    ) -> TdmRules:
        record = await self._records.find(origin, page, permit)
        access = self._policy.access(record, self._time())
        rules = _rules_of(record, access)
        self._entries.put(origin, _Entry(rules, access), rules.nbytes)
        return rules

    async def _store_fetched(self, origin: Origin, _: TdmRules | None, __: Request) -> None:
        await self._records.store_fetched(origin)


def _rules_of(record: Record, access: Access) -> TdmRules:
    last = record.last
    if access.copy is not None:
        return TdmRules(access.copy.body)
    evidence = last.evidence
    if isinstance(last, Unavailable) and evidence.status in _NONE and evidence.error is None:
        return _NOT_USED
    return TdmRules.unread(evidence.summary)
