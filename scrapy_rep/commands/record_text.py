"""Records (how the last fetches of a file ended) as text and as values for JSON."""

import math
from typing import Any

from scrapy_rep.commands.output import describe_age
from scrapy_rep.protocol.record import Record
from scrapy_rep.settings import Options
from scrapy_rep.utils.text import counted, describe_duration, printable, utc_time_text


def as_dict(record: Record, options: Options, now: float) -> dict[str, Any]:
    """Return a record as values for JSON: times in seconds since the epoch, None for no time."""
    evidence, end = record.last.evidence, options.policy.access(record, now).end
    return {
        "outcome": record.last.kind.value,
        "status": evidence.status,
        "error": evidence.error,
        "hops": list(evidence.hops),
        "size": evidence.size,
        "truncated": evidence.truncated,
        "at": evidence.at,
        "until": None if end == math.inf else end,
        "unreachable_since": record.unreachable_since,
        "unreachable_for": record.unreachable_for,
        "next_try": record.next_try,
    }


def summary(record: Record, options: Options, now: float) -> str:
    """Return how the last fetch ended, as one line of text, without the word for the outcome."""
    evidence, since = record.last.evidence, record.unreachable_since
    parts = [printable(evidence.summary)]
    if record.copy is not None:
        size = counted(len(record.copy.body), "byte")
        parts.append(size if since is None else f"a copy of {size}")
    parts.append(f"{'fetched' if since is None else 'tried'} {describe_age(now - evidence.at)}")
    if since is not None and record.tries > 1:
        parts.append(f"unreachable for {describe_duration(now - since)}, tries: {record.tries}")
    left = options.policy.access(record, now).end - now
    if options.policy.is_due(record, now):
        parts.append("fetched again by the next crawl")
    elif left < math.inf:
        parts.append(f"{'valid for' if since is None else 'next try in'} {describe_duration(left)}")
    return ", ".join(parts)


def details(record: Record, options: Options, now: float, source: str) -> list[str]:
    """Return lines about a record: outcome, ``source``, and when the file is fetched again."""
    evidence = record.last.evidence
    outcome = f"{record.last.kind.value} ({printable(evidence.summary)})"
    lines = [f"{printable(record.origin.robotstxt_url)}: {outcome}"]
    lines += [f"redirected to {printable(hop)}" for hop in evidence.hops]
    cut = ", truncated" if evidence.truncated else ""
    lines.append(f"{counted(evidence.size, 'byte')}{cut}")
    asked = f"{utc_time_text(evidence.at)}, {describe_age(now - evidence.at)} ({source})"
    lines.append(f"{'fetched' if record.unreachable_since is None else 'tried'} at {asked}")
    end = options.policy.access(record, now).end
    if record.unreachable_since is None:
        due = options.policy.is_due(record, now)
        lines.append(f"{'was valid' if due else 'valid'} until {utc_time_text(end)}")
        return lines
    lines.append(
        f"unreachable since {utc_time_text(record.unreachable_since)}, tries: {record.tries}"
    )
    if record.next_try is not None:
        lines.append(f"next try not before {utc_time_text(record.next_try)}")
    return lines
