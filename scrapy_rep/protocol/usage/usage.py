"""``Usage``: the usage preferences for a page, from all places, and the result for a purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_USAGE_URIS
from scrapy_rep.protocol.meta_tags import parts_for_tokens
from scrapy_rep.protocol.product_tokens import Tokens, names_in_tags
from scrapy_rep.protocol.usage.statement import (
    ANY,
    CONTENT_USAGE,
    DISALLOW,
    HEADER,
    LICENSE,
    MEANINGS,
    META,
    PLACES,
    POLICY,
    PURPOSES,
    READERS,
    RESERVATION,
    TAG_LABELS,
    TAGS,
    TDMREP,
    UNKNOWN,
    Statement,
    Value,
    license_in_link,
    statements_of,
    strictest_value,
    tags_in,
    tdm_in,
)

HEADERS: Final = (
    "Content-Usage",
    "Content-Signal",
    "X-Robots-Tag",
    "TDM-Reservation",
    "TDM-Policy",
    "Link",
)
"""The response headers that may contain usage preferences."""
_TDM: Final = (RESERVATION, POLICY)


def _statements_of_unread(why: str) -> tuple[Statement, ...]:
    return (
        *statements_of(TAGS, dict.fromkeys(TAG_LABELS, DISALLOW), why, None, META),
        *statements_of(TDMREP, {RESERVATION: DISALLOW}, why, None, META),
    )


_TOO_MANY: Final = _statements_of_unread(f"more than {MAX_META_ELEMENTS:,} meta elements")
_UNREADABLE: Final = _statements_of_unread("meta elements that can't be read")


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage preferences of a site for one page. ``with_…`` methods return a copy with more."""

    statements: tuple[Statement, ...] = ()
    """The statements that apply to the page, in the order of PLACES."""
    tokens: Tokens = ()
    """The product tokens of the crawler, the most specific first."""

    def value(self, label: str) -> Value:
        """Return the combined value of a category of Content-Usage, from all places."""
        return strictest_value(
            statement.value
            for statement in self.statements
            if statement.source == CONTENT_USAGE and statement.label in {label, ANY}
        )

    def result(self, purpose: str) -> Value:
        """Return the combined value of all statements for a purpose.

        A disallow goes before an allow. Raises ValueError if ``purpose`` is not one of PURPOSES.
        """
        if purpose not in PURPOSES:
            raise ValueError(f"{purpose!r} is no purpose: there are {', '.join(PURPOSES)}")
        return strictest_value(statement.value for statement in self._statements_about(purpose))

    def first_disallowing(self, purposes: Iterable[str]) -> Statement | None:
        """Return the first statement, purpose by purpose, that disallows one of them; else None."""
        about = chain.from_iterable(map(self._statements_about, purposes))
        return next((statement for statement in about if statement.value == DISALLOW), None)

    def _statements_about(self, purpose: str) -> list[Statement]:
        """Return the statements for ``purpose``; TDMRep only of the last place that reserves."""
        last = max((PLACES.index(s.place) for s in self.statements if _reserves(s)), default=0)
        return [
            statement
            for statement in self.statements
            if purpose in MEANINGS.get((statement.source, statement.label), ())
            and (statement.source != TDMREP or PLACES.index(statement.place) == last)
        ]

    def licenses(self) -> Usage:
        """Return the usage with its licenses only."""
        return replace(self, statements=tuple(s for s in self.statements if s.source == LICENSE))

    def with_header(self, name: str, values: Iterable[str | bytes]) -> Usage:
        """Return the usage with the statements of a response header added.

        ``values`` are all values of the header. A header that is not in HEADERS adds nothing.
        """
        lines = [v.decode("latin-1") if isinstance(v, bytes) else v for v in values]
        name = name.lower()
        if not lines:
            return self
        joined = ", ".join(lines)
        statements: list[Statement] = []
        if name in READERS:
            values_read = READERS[name](joined.encode("utf-8", "surrogatepass"))
            statements = statements_of(name, values_read, joined, None, HEADER)
        elif name == "x-robots-tag":
            for line in lines:
                statements += tags_in(",".join(parts_for_tokens(line, self.tokens)), line, HEADER)
        elif name in _TDM:
            statements = tdm_in(name, lines, HEADER)
        elif name == "link":
            statements = license_in_link(joined)
        return self._with(statements)

    def with_meta(self, elements: Iterable[tuple[str, str]] | None) -> Usage:
        """Return the usage with the statements of the meta elements of a page added.

        ``elements`` are their names and contents in the order of the page. If they can't be read
        (None), or are more than MAX_META_ELEMENTS, the page has all tags and a reservation.
        """
        if elements is None:
            return self._with(_UNREADABLE)
        names = names_in_tags(self.tokens)
        contents: dict[str, list[str]] = {}
        for number, (name, content) in enumerate(elements):
            if number == MAX_META_ELEMENTS:
                return self._with(_TOO_MANY)
            key = name.strip().lower()
            if key in _TDM or key in names:
                contents.setdefault(key, []).append(content)
        statements: list[Statement] = []
        for name, values in contents.items():
            text = ", ".join(values)
            found = tdm_in(name, [text], META) if name in _TDM else tags_in(text, text, META)
            statements += found
        return self._with(statements)

    def _with(self, statements: Iterable[Statement]) -> Usage:
        return replace(self, statements=distinct((*self.statements, *statements)))

    def as_dict(self) -> dict[str, Any]:
        """Return a dict of plain values, which can be written as JSON and to a JOBDIR."""
        return {
            "statements": [statement._asdict() for statement in self.statements],
            "tokens": list(self.tokens),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Usage:
        """Return the usage from the values that ``as_dict`` has returned; they are not checked."""
        statements = tuple(Statement(**statement) for statement in values["statements"])
        return cls(statements, tuple(values["tokens"]))


class Judgement(NamedTuple):
    """The usage preferences for a page, and the result for each declared purpose."""

    usage: Usage
    results: dict[str, Value]
    refused: bool
    """Whether the use of the page is refused: the result for a purpose is ``disallow``."""

    def as_dict(self) -> dict[str, Any]:
        """Return the results and the preferences as plain values."""
        return {"results": dict(self.results), **self.usage.as_dict()}


def judge(usage: Usage, purposes: Iterable[str]) -> Judgement:
    """Compare preferences with purposes; raise ValueError if one is not one of PURPOSES."""
    results = {purpose: usage.result(purpose) for purpose in purposes}
    return Judgement(usage, results, DISALLOW in results.values())


def distinct(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the first statements of those that differ only in text or line, in order.

    Licenses and policies are kept for each URI, up to MAX_USAGE_URIS. So the number of statements
    is limited, and no disallow is lost.
    """
    first: dict[tuple[str, ...], Statement] = {}
    uris = 0
    in_order = sorted(statements, key=lambda each: (PLACES.index(each.place), each.line or 0))
    for statement in in_order:
        is_uri = statement.source == LICENSE or statement.label == POLICY
        value = statement.raw if is_uri else statement.value
        key = statement.place, statement.source, statement.label, value
        if key not in first and (not is_uri or uris < MAX_USAGE_URIS):
            first[key] = statement
            uris += is_uri
    return tuple(first.values())


def _reserves(statement: Statement) -> bool:
    return statement.label == RESERVATION and statement.value != UNKNOWN
