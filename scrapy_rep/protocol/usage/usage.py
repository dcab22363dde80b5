"""``Usage``: the usage preferences for a page, from all places, and the result for a purpose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_USAGE_URIS
from scrapy_rep.protocol.product_tokens import names_in_tags
from scrapy_rep.protocol.usage.readers import (
    POLICY,
    READERS,
    RESERVATION,
    TAG_LABELS,
    license_in_link,
    tags_in_header,
    tags_in_meta,
    tdm_in,
)
from scrapy_rep.protocol.usage.statement import (
    ANY,
    CONTENT_USAGE,
    DISALLOW,
    HEADER,
    LICENSE,
    MEANINGS,
    META,
    PLACES,
    PURPOSES,
    TAGS,
    TDMREP,
    UNKNOWN,
    Statement,
    Value,
    statements_of,
    strictest_value,
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


def _statements_of_unread(why: str) -> tuple[Statement, ...]:
    return (
        *statements_of(TAGS, dict.fromkeys(TAG_LABELS, DISALLOW), why, None, META),
        *statements_of(TDMREP, {RESERVATION: DISALLOW}, why, None, META),
    )


TOO_MANY_ELEMENTS: Final = _statements_of_unread(f"more than {MAX_META_ELEMENTS:,} meta elements")
"""The statements for a page with more meta elements than are read: all tags, and a reservation."""
UNREADABLE_ELEMENTS: Final = _statements_of_unread("meta elements that can't be read")
"""The statements for a page whose meta elements can't be read: all tags, and a reservation."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage preferences of a site for one page. ``with_…`` methods return a copy with more."""

    statements: tuple[Statement, ...] = ()
    """The statements that apply to the page, in the order of PLACES."""
    tokens: tuple[str, ...] = ()
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
            statements = [tag for line in lines for tag in tags_in_header(line, self.tokens)]
        elif name in {RESERVATION, POLICY}:
            statements = tdm_in(name, lines, HEADER)
        elif name == "link":
            statements = license_in_link(joined)
        return self.with_statements(statements)

    def with_meta(self, elements: Mapping[str, str]) -> Usage:
        """Return the usage with the statements of meta elements added.

        ``elements`` are the contents of the meta elements of the page, by name.
        """
        statements: list[Statement] = []
        for name, content in elements.items():
            if name.strip().lower() in {RESERVATION, POLICY}:
                statements += tdm_in(name.strip().lower(), [content], META)
            else:
                statements += tags_in_meta(name, content, self.tokens)
        return self.with_statements(statements)

    def with_elements(self, elements: Iterable[tuple[str, str]]) -> Usage:
        """Return the usage with the statements of the meta elements of a page added.

        ``elements`` are their names and contents in the order of the page. If there are more than
        MAX_META_ELEMENTS, the statements TOO_MANY_ELEMENTS are added instead.
        """
        names = {RESERVATION, POLICY, *names_in_tags(self.tokens)}
        contents: dict[str, list[str]] = {}
        for number, (name, content) in enumerate(elements):
            if number == MAX_META_ELEMENTS:
                return self.with_statements(TOO_MANY_ELEMENTS)
            if (key := name.strip().lower()) in names:
                contents.setdefault(key, []).append(content)
        return self.with_meta({name: ", ".join(values) for name, values in contents.items()})

    def with_statements(self, statements: Iterable[Statement]) -> Usage:
        """Return the usage with these statements added, sorted and without repetitions."""
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


def distinct(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return statements without repetitions, in the order of places and lines.

    Of statements that differ only in text or line, the first is kept. Licenses and policies are
    kept for each URI, up to MAX_USAGE_URIS. So their number is limited, and no disallow is lost.
    """
    first: dict[tuple[str, ...], Statement] = {}
    uris = 0
    for statement in sorted(statements, key=_sort_key):
        is_uri = statement.source == LICENSE or statement.label == POLICY
        key = (
            statement.place,
            statement.source,
            statement.label,
            statement.raw if is_uri else statement.value,
        )
        if key not in first and (not is_uri or uris < MAX_USAGE_URIS):
            first[key] = statement
            uris += is_uri
    return tuple(first.values())


def _sort_key(statement: Statement) -> tuple[int, int]:
    return PLACES.index(statement.place), statement.line or 0


def _reserves(statement: Statement) -> bool:
    return statement.label == RESERVATION and statement.value != UNKNOWN
