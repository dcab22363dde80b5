"""Lines to groups: what a robots.txt says, to whom, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.lexer import Kind, lex
from scrapy_rep.protocol.matcher import RuleLine, RuleSet
from scrapy_rep.protocol.origin import target_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy_rep.protocol.matcher import Rule
    from scrapy_rep.protocol.verdict import Verdict

ANYONE: Final = "*"
"""The token of the group for those whom no other group names."""

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
    records: tuple[Record, ...]
    """Lines of other fields: Crawl-delay, Request-rate, Host, unknown ones."""
    rule_lines: tuple[RuleLine, ...] = field(repr=False)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the file's order, those that can never match among them."""
        return tuple(line.rule() for line in self.rule_lines)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens of the ``User-agent`` lines, lower case; ``*`` is anyone."""
        names = (_names(agent.value) for agent in self.agents)
        return tuple(dict.fromkeys(forms[-1] for forms in names if forms))


class _Building:
    """A group while its lines come in."""

    __slots__ = ("agents", "records", "rule_lines")

    def __init__(self) -> None:
        self.agents: list[Record] = []
        self.records: list[Record] = []
        self.rule_lines: list[RuleLine] = []


class RobotsTxt:
    """A robots.txt file, parsed."""

    __slots__ = ("_by_token", "_index_files", "_last", "groups", "records", "sitemaps")

    groups: tuple[Group, ...]
    """All groups, in the file's order."""
    sitemaps: list[str]
    """Values of the ``Sitemap`` lines, in the file's order (SPEC L-6)."""
    records: tuple[Record, ...]
    """Lines before any group, rules among them: they belong to nobody (SPEC G-8)."""

    def __init__(
        self,
        groups: Iterable[Group],
        sitemaps: Iterable[str],
        records: Iterable[Record],
        *,
        index_files: bool = True,
    ) -> None:
        self.groups = tuple(groups)
        self.sitemaps = list(sitemaps)
        self.records = tuple(records)
        self._index_files = index_files
        self._last: tuple[tuple[str, ...], RuleSet] | None = None
        self._by_token: dict[str, list[Group]] = {}
        for group in self.groups:
            names = {name for agent in group.agents for name in _names(agent.value)}
            for name in names:
                self._by_token.setdefault(name, []).append(group)

    @classmethod
    def parse(cls, body: bytes, *, index_files: bool = True) -> RobotsTxt:
        """Parse any bytes; never raises.

        With *index_files*, an ``Allow`` that ends in ``/index.htm`` or ``/index.html`` also allows
        the directory itself (Google).
        """
        building: list[_Building] = []
        sitemaps: list[str] = []
        outside: list[Record] = []
        group: _Building | None = None
        naming = False  # in a run of User-agent lines
        for number, kind, name, value, _ in lex(body):
            if kind is Kind.ALLOW or kind is Kind.DISALLOW:
                naming = False
                if group:
                    group.rule_lines.append(RuleLine(kind is Kind.ALLOW, value, number))
                else:
                    outside.append(_record(name, value, number))
            elif kind is Kind.USER_AGENT:
                if not naming or group is None:
                    group = _Building()
                    building.append(group)
                    naming = True
                group.agents.append(_record(name, value, number))
            elif kind is Kind.SITEMAP:
                sitemaps.append(_text(value))
            elif kind is Kind.OTHER:
                records = group.records if group else outside
                records.append(_record(name, value, number))
        groups = (
            Group(tuple(it.agents), tuple(it.records), tuple(it.rule_lines)) for it in building
        )
        return cls(groups, sitemaps, outside, index_files=index_files)

    def group_for(self, *tokens: str) -> Group | None:
        """Return the one group that holds for a crawler, or None (RFC 9309 §2.2.1).

        *tokens* name the crawler, the most specific first: the first that has a group decides,
        else ``*``. Groups of one token are merged, a specific group is never merged with ``*``.
        """
        for token in (*tokens, ANYONE):
            groups = self._by_token.get(token.lower())
            if groups:
                return groups[0] if len(groups) == 1 else _merge(groups)
        return None

    def rules_for(self, *tokens: str) -> RuleSet:
        """Return the rules that hold for a crawler, compiled; see group_for."""
        if self._last and self._last[0] == tokens:
            return self._last[1]
        group = self.group_for(*tokens)
        rules = RuleSet.compile(group.rule_lines if group else (), index_files=self._index_files)
        self._last = tokens, rules
        return rules

    def verdict(self, url: str, *tokens: str) -> Verdict:
        """Return whether a crawler may fetch a URL of this file's origin, and why."""
        return self.rules_for(*tokens).verdict_for(target_of(url))


def _merge(groups: list[Group]) -> Group:
    return Group(
        tuple(agent for group in groups for agent in group.agents),
        tuple(record for group in groups for record in group.records),
        tuple(line for group in groups for line in group.rule_lines),
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


def _record(name: bytes, value: bytes, number: int) -> Record:
    return Record(_text(name.lower()), _text(value), number)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
