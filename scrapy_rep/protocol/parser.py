"""Lines to groups: what a robots.txt says, to whom, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import RULES, Kind, lex_line, lines_of, rules_in
from scrapy_rep.protocol.matcher import RuleSet, rule_of
from scrapy_rep.protocol.origin import target_of

if TYPE_CHECKING:
    from scrapy_rep.protocol.lexer import Line
    from scrapy_rep.protocol.matcher import Rule
    from scrapy_rep.protocol.verdict import Verdict

ANYONE: Final = "*"
"""The token of the group for those whom no other group names."""

_BEFORE_USER_AGENT: Final = b"uU \t\v\f"
"""What a ``User-agent`` line can begin with."""
_ANYONE: Final = re.compile(r"\*(?:[ \t\v\f]|\Z)").match
_TOKEN: Final = re.compile(r"[A-Za-z_-]*").match
_WIDE_TOKEN: Final = re.compile(r"[A-Za-z0-9._-]*").match


class Record(NamedTuple):
    """A line that is no rule, as far as the standard goes: ``Crawl-delay: 10``."""

    field: str
    """Lower case."""
    value: str
    line: int
    """1-based."""


@dataclass(frozen=True, slots=True)
class Group:
    """One or more ``User-agent`` lines and what follows them (RFC 9309 §2.2)."""

    agents: tuple[Record, ...]
    """The ``User-agent`` lines, values as written."""
    rules: tuple[Rule, ...]
    """The rules in the file's order, those that can never match among them."""
    records: tuple[Record, ...]
    """Lines of other fields: Crawl-delay, Request-rate, Host, unknown ones."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the ``User-agent`` lines, lower case; ``*`` is anyone."""
        names = (_names(agent.value) for agent in self.agents)
        return tuple(dict.fromkeys(forms[-1] for forms in names if forms))


class RobotsTxt:
    """A robots.txt file, parsed.

    Parsing finds the ``User-agent`` lines, and so the groups; what stands in a group is read when
    it is asked for, since most groups are for others.
    """

    __slots__ = ("_by_token", "_index_files", "_last", "_lines", "_spans")

    def __init__(self, lines: list[bytes], *, index_files: bool) -> None:
        self._lines = lines
        self._index_files = index_files
        self._last: tuple[tuple[str, ...], RuleSet] | None = None
        self._spans: list[range] = []
        """Numbers of the lines of each group."""
        self._by_token: dict[str, list[range]] = {}
        """Groups by token."""
        self._find_groups()

    @classmethod
    def parse(cls, body: bytes, *, index_files: bool = True) -> RobotsTxt:
        """Parse any bytes; never raises.

        With *index_files*, an ``Allow`` that ends in ``/index.htm`` or ``/index.html`` also allows
        the directory itself (Google).
        """
        return cls(lines_of(body), index_files=index_files)

    def _find_groups(self) -> None:
        lines = self._lines
        named: list[list[str]] = []  # tokens of each group
        starts: list[int] = []
        last = 0  # number of the last User-agent line
        for number, raw in enumerate(lines, 1):
            if raw[:1] not in _BEFORE_USER_AGENT:
                continue
            line = lex_line(number, raw)
            if line.kind is not Kind.USER_AGENT:
                continue
            if not last or self._has_rule(range(last + 1, number)):
                starts.append(number)
                named.append([])
            last = number
            named[-1] += _names(_text(line.value))
        stops = [*starts[1:], len(lines) + 1]
        self._spans = [
            range(start, stop) for start, stop in zip(starts, stops[: len(starts)], strict=True)
        ]
        for span, names in zip(self._spans, named, strict=True):
            for name in dict.fromkeys(names):
                self._by_token.setdefault(name, []).append(span)

    def _has_rule(self, numbers: range) -> bool:
        return any(self._lex(number).kind in RULES for number in numbers)

    def _lex(self, number: int) -> Line:
        return lex_line(number, self._lines[number - 1])

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the file's order."""
        return tuple(self._group([span]) for span in self._spans)

    @property
    def sitemaps(self) -> list[str]:
        """Values of the ``Sitemap`` lines, in the file's order (SPEC L-6)."""
        lines = map(lex_line, range(1, len(self._lines) + 1), self._lines)
        return [_text(line.value) for line in lines if line.kind is Kind.SITEMAP]

    @property
    def records(self) -> tuple[Record, ...]:
        """Lines before any group, rules among them: they belong to nobody (SPEC G-8)."""
        end = self._spans[0].start if self._spans else len(self._lines) + 1
        kinds = {*RULES, Kind.OTHER}
        return tuple(_record(line) for line in map(self._lex, range(1, end)) if line.kind in kinds)

    def group_for(self, *tokens: str) -> Group | None:
        """Return the one group that holds for a crawler, or None (RFC 9309 §2.2.1).

        *tokens* name the crawler, the most specific first: the first that has a group decides,
        else ``*``. Groups of one token are merged, a specific group is never merged with ``*``.
        """
        spans = self._spans_for(tokens)
        return self._group(spans) if spans else None

    def records_for(self, *tokens: str) -> tuple[Record, ...]:
        """Return the lines of other fields that are meant for a crawler; see group_for.

        They are part of no standard, and do not end a run of ``User-agent`` lines as far as rules
        go (SPEC G-7). Those who write them mean the ``User-agent`` lines right above: the
        ``Crawl-delay`` of one crawler is not to become everyone's because no rule follows it.
        """
        token = next((t.lower() for t in (*tokens, ANYONE) if t.lower() in self._by_token), ANYONE)
        records = []
        for span in self._by_token.get(token, ()):
            names: list[str] = []
            is_run = False
            for line in map(self._lex, span):
                if line.kind is Kind.USER_AGENT:
                    names = [*(names if is_run else ()), *_names(_text(line.value))]
                    is_run = True
                elif line.kind is Kind.OTHER or line.kind in RULES:
                    is_run = False
                    if line.kind is Kind.OTHER and token in names:
                        records.append(_record(line))
        return tuple(records)

    def rules_for(self, *tokens: str) -> RuleSet:
        """Return the rules that hold for a crawler, compiled; see group_for."""
        if self._last and self._last[0] == tokens:
            return self._last[1]
        numbers = [number for span in self._spans_for(tokens) for number in span]
        rules = RuleSet.compile(*rules_in(self._lines, numbers), index_files=self._index_files)
        self._last = tokens, rules
        return rules

    def verdict(self, url: str, *tokens: str) -> Verdict:
        """Return whether a crawler may fetch a URL of this file's origin, and why."""
        return self.rules_for(*tokens).verdict_for(target_of(url))

    def _spans_for(self, tokens: tuple[str, ...]) -> list[range]:
        for token in (*tokens, ANYONE):
            spans = self._by_token.get(token.lower())
            if spans:
                return spans
        return []

    def _group(self, spans: list[range]) -> Group:
        numbers = [number for span in spans for number in span]
        values, words = rules_in(self._lines, numbers)
        lines = [self._lex(number) for number in numbers]
        return Group(
            tuple(_record(line) for line in lines if line.kind is Kind.USER_AGENT),
            tuple(map(rule_of, canonical_patterns(values), values, words)),
            tuple(_record(line) for line in lines if line.kind is Kind.OTHER),
        )


def _names(agent: str) -> tuple[str, ...]:
    """Return the tokens that a ``User-agent`` value names, lower case, the fullest last.

    That is its beginning as far as a product token goes (SPEC G-3), and, for crawlers whose
    configured token has digits or dots, as far as it goes with these.
    """
    if _ANYONE(agent):
        return (ANYONE,)
    forms = (_TOKEN(agent), _WIDE_TOKEN(agent))
    return tuple(dict.fromkeys(form[0].lower() for form in forms if form and form[0]))


def _record(line: Line) -> Record:
    return Record(_text(line.field.lower()), _text(line.value), line.number)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
