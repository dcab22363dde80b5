"""The line in the log about unreachable origins that all that is left of a crawl waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_rep.protocol.origin import Origin
    from scrapy_rep.protocol.outage import Outage

_MAX_NAMED: Final = 3


def line_about(
    outages: Sequence[tuple[Origin, Outage | None]], now: float, patience: float, left: float | None
) -> str:
    """Return a line that names the first three origins, why they fail, and when they are tried.

    ``now`` is in seconds since the epoch. A request is dropped when it has waited for ``patience``
    seconds, the first of them in ``left`` seconds; None where none is.
    """
    soonest = sorted(outages, key=lambda each: each[1].next_try if each[1] else now)
    named = [_named(*each, now) for each in soonest[:_MAX_NAMED]]
    if len(outages) > _MAX_NAMED:
        named.append(f"and {len(outages) - _MAX_NAMED} more")
    noun = "origin" if len(outages) == 1 else "origins"
    line = f"Waiting for {len(outages)} unreachable {noun}: {', '.join(named)}"
    if left is None:
        return line
    return (
        f"{line}. Requests are dropped after {patience:g} s (REP_DEFER_TIMEOUT), "
        f"the first in {max(0.0, left):.0f} s"
    )


def line_about_others(origins: int, seconds: float) -> str:
    """Return a line about origins whose requests Redis keeps, the first due in ``seconds``."""
    noun = "origin" if origins == 1 else "origins"
    return f"Waiting for {origins} unreachable {noun}: the next try is in {max(0.0, seconds):.0f} s"


def _named(origin: Origin, outage: Outage | None, now: float) -> str:
    if outage is None:  # the memory holds it no more
        return str(origin)
    return f"{origin} ({outage.cause}, next try in {max(0.0, outage.next_try - now):.0f} s)"
