"""What is known of the tdmrep.json of an origin, and whether it may be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH, TdmRules

if TYPE_CHECKING:
    from scrapy_rep.cache.cache import Cache
    from scrapy_rep.cache.entry import Entry
    from scrapy_rep.protocol.origin import Origin

_NOT_TO_BE_ASKED: Final = TdmRules.unread(f"robots.txt disallows {TDMREP_PATH}")
_NOT_USED: Final = TdmRules(b"[]")


def known_tdmrep(
    cache: Cache, origin: Origin | None, entry: Entry, tokens: tuple[str, ...]
) -> TdmRules | None:
    """Return what the tdmrep.json of ``origin`` says; None where that is to be found out.

    ``entry`` is what is known of its robots.txt.
    """
    if origin is None or origin.scheme == "ftp":
        return _NOT_USED
    verdict = entry.verdict(TDMREP_PATH, tokens)
    if verdict is not None and not verdict.allowed:
        return _NOT_TO_BE_ASKED
    return cache.tdmrep.known_rules(origin)
