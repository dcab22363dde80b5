"""Lines to groups: what a robots.txt says, to whom, and where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from scrapy_rep.protocol.lexer import Contents, Kind, Span
from scrapy_rep.protocol.matcher import RuleSet, rules_of
from scrapy_rep.protocol.origin import target_of

if TYPE_CHECKING:
    from scrapy_rep.protocol.lexer import Line
    from scrapy_rep.protocol.matcher import Rule
    from scrapy_rep.protocol.verdict import Verdict

ANYONE: Final = "*"
"""The token of the group for those whom no other group names."""

_RECORDS: Final = frozenset({Kind.ALLOW, Kind.DISALLOW, Kind.OTHER})
_ANYONE: Final = re.compile(rb"\*(?:[ \t\v\f]|\Z)").match
_TOKEN: Final = re.compile(rb"[a-z_-]+").match
_WIDE_TOKEN: Final = re.compile(rb"[a-z0-9._-]+").match


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
        values = (agent.value.lower().encode() for agent in self.agents)
        names = (names[-1].decode() for names in map(_names, values) if names)
        return tuple(dict.fromkeys(names))


class RobotsTxt:
    """A robots.txt file, parsed.

    Parsing finds the ``User-agent`` lines, and so the groups; what stands in a group is read when
    it is asked for, since most groups are for others.
    """

    __slots__ = ("_agents", "_contents", "_groups", "_index_files", "_last")

    def __init__(self, contents: Contents, *, index_files: bool) -> None:
        self._contents = contents
        self._index_files = index_files
        self._last: tuple[tuple[str, ...], RuleSet] | None = None
        self._groups: list[Span] = []
        self._agents: list[tuple[bytes, Span]] = []
        """Values of the User-agent lines, lower case, each with its group."""
        for agents, group in contents.groups():
            self._groups.append(group)
            self._agents += [(agent.lower(), group) for agent in agents]

    @classmethod
    def parse(cls, body: bytes, *, index_files: bool = True) -> RobotsTxt:
        """Parse any bytes; never raises.

        With *index_files*, an ``Allow`` that ends in ``/index.htm`` or ``/index.html`` also allows
        the directory itself (Google).
        """
        return cls(Contents(body), index_files=index_files)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the file's order."""
        return tuple(self._group([span]) for span in self._groups)

    @property
    def sitemaps(self) -> list[str]:
        """Values of the ``Sitemap`` lines, in the file's order (SPEC L-6)."""
        lines = self._contents.lines(self._contents.span)
        return [_text(line.value) for line in lines if line.kind is Kind.SITEMAP]

    @property
    def records(self) -> tuple[Record, ...]:
        """Lines before any group, rules among them: they belong to nobody (SPEC G-8)."""
        stop = self._groups[0].start if self._groups else self._contents.span.stop
        lines = self._contents.lines(self._contents.span._replace(stop=stop))
        return tuple(_record(line) for line in lines if line.kind in _RECORDS)

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
        name, spans = self._named(tokens)
        records = []
        for span in spans:
            names: list[bytes] = []
            is_run = False
            for line in self._contents.lines(span):
                if line.kind is Kind.USER_AGENT:
                    names = [*(names if is_run else ()), *_names(line.value.lower())]
                    is_run = True
                elif line.kind in _RECORDS:
                    is_run = False
                    if line.kind is Kind.OTHER and name in names:
                        records.append(_record(line))
        return tuple(records)

    def rules_for(self, *tokens: str) -> RuleSet:
        """Return the rules that hold for a crawler, compiled; see group_for."""
        if self._last and self._last[0] == tokens:
            return self._last[1]
        values, words = self._rules(self._spans_for(tokens))
        rules = RuleSet.compile(values, words, index_files=self._index_files)
        self._last = tokens, rules
        return rules

    def verdict(self, url: str, *tokens: str) -> Verdict:
        """Return whether a crawler may fetch a URL of this file's origin, and why."""
        return self.rules_for(*tokens).verdict_for(target_of(url))

    def _spans_for(self, tokens: tuple[str, ...]) -> list[Span]:
        """Return the groups that hold for a crawler."""
        return self._named(tokens)[1]

    def _named(self, tokens: tuple[str, ...]) -> tuple[bytes, list[Span]]:
        """Return the first of a crawler's names that has groups, and these."""
        name = b""
        for token in (*tokens, ANYONE):
            name = token.lower().encode("utf-8", "surrogatepass")
            groups: list[Span] = []
            is_named: dict[bytes, bool] = {}
            last = None
            for agent, group in self._agents:
                if group is last or not agent.startswith(name):
                    continue
                if agent not in is_named:
                    is_named[agent] = name in _names(agent)
                if not is_named[agent]:
                    continue
                if last is None or last.stop < group.start:
                    groups.append(group)
                else:  # right behind it
                    number, start, _ = groups[-1]
                    groups[-1] = Span(number, start, group.stop)
                last = group
            if groups:
                return name, groups
        return name, []

    def _rules(self, spans: list[Span]) -> tuple[list[bytes], list[int]]:
        values: list[bytes] = []
        words: list[int] = []
        for span in spans:
            more_values, more_words = self._contents.rules(span)
            values += more_values
            words += more_words
        return values, words

    def _group(self, spans: list[Span]) -> Group:
        lines = [line for span in spans for line in self._contents.lines(span)]
        return Group(
            tuple(_record(line) for line in lines if line.kind is Kind.USER_AGENT),
            tuple(rules_of(*self._rules(spans))),
            tuple(_record(line) for line in lines if line.kind is Kind.OTHER),
        )


def _names(agent: bytes) -> tuple[bytes, ...]:
    """Return what a ``User-agent`` value, in lower case, names: its token, the fullest form last.

    That is its beginning as far as a product token goes (SPEC G-3), and, for crawlers whose
    configured token has digits or dots, as far as it goes with these.
    """
    if _ANYONE(agent):
        return (b"*",)
    forms = (_TOKEN(agent), _WIDE_TOKEN(agent))
    return tuple(form[0] for form in forms if form)


def _record(line: Line) -> Record:
    return Record(_text(line.field.lower()), _text(line.value), line.number)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
