"""The known tdmrep.json of an origin, and whether it may be fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH, TdmRules

if TYPE_CHECKING:
    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.origin import Origin

_DISALLOWED: Final = TdmRules.unread(f"robots.txt disallows {TDMREP_PATH}")
_NOT_USED: Final = TdmRules(b"[]")


def known_tdmrep(
    cache: Cache, origin: Origin | None, entry: Entry, tokens: tuple[str, ...]
) -> TdmRules | None:
    """Return the rules in the tdmrep.json of ``origin``; None if a lookup is needed.

    ``entry`` is the one of its robots.txt in the cache.
    """
    if origin is None or origin.scheme == "ftp":
        return _NOT_USED
    verdict = entry.verdict(TDMREP_PATH, tokens)
    if verdict is not None and not verdict.allowed:
        return _DISALLOWED
    return cache.tdmrep.known_rules(origin)
