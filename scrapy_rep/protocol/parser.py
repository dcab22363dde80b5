"""The parser: ``RobotsTxt`` has the groups of a robots.txt, and finds those of a crawler."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import Final, NamedTuple

from scrapy_rep.protocol.group_search import Contents, Span
from scrapy_rep.protocol.lexer import Line, LineKind, as_text
from scrapy_rep.protocol.origin import target_of
from scrapy_rep.protocol.rules import RuleSet, matching_rules, rules_of
from scrapy_rep.protocol.usage import (
    NO_USAGE_LINES,
    USAGE_FIELDS,
    Usage,
    UsageLines,
    read,
    usage_lines,
)
from scrapy_rep.protocol.verdict import Rule, Verdict

ANYONE: Final = "*"
"""The token of the group that applies to all crawlers without a group of their own."""

_ANYONE: Final = re.compile(rb"\*(?:[ \t\v\f]|\Z)").match
_TOKEN: Final = re.compile(r"[a-z_-]+").match
_WIDE_TOKEN: Final = re.compile(r"[\w.-]+").match


class Field(NamedTuple):
    """A line of a group that is no rule: ``User-agent``, or a field outside RFC 9309."""

    name: str
    """The name of the field, in lower case."""
    value: str
    line: int
    """The line number, 1-based."""


@dataclass(frozen=True, slots=True)
class Group:
    """``User-agent`` lines and the lines below them (RFC 9309 §2.2), of one or more groups."""

    agents: tuple[Field, ...]
    """The ``User-agent`` lines, with their values as written."""
    rules: tuple[Rule, ...]
    """The rules in the order of the file, including those that can never match."""
    fields: tuple[Field, ...]
    """The lines with other fields, such as Crawl-delay, Request-rate and Host."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The product tokens of the ``User-agent`` lines in lower case; ``*``: all crawlers."""
        values = (agent.value.encode().lower() for agent in self.agents)
        names = (names[-1].decode() for names in map(names_in_agent, values) if names)
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a verdict was found."""

    target: str
    """Path and query of the URL in canonical form, with which patterns are matched."""
    tokens: tuple[str, ...]
    """The product tokens of the crawler, in the order in which their groups were searched for."""
    token: str | None
    """The token whose group applies: one of ``tokens`` or ``*``; None if no group applies."""
    group: Group | None
    """The group that applies. Groups of one token are merged."""
    matching: tuple[Rule, ...]
    """The rules of ``group`` that match, the longest first. The first decides, if a rule does."""
    verdict: Verdict


class RobotsTxt:
    """A parsed robots.txt.

    It keeps the text, and reads a group each time it is needed, because most groups are for other
    crawlers. Only the rules for the tokens that were asked for last are kept. *tokens* are always
    the product tokens of a crawler, the most specific first.
    """

    __slots__ = ("_contents", "_last", "_last_named")

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._last: tuple[tuple[str, ...], RuleSet] | None = None
        self._last_named: tuple[tuple[str, ...], bytes, list[Span]] | None = None

    @classmethod
    def parse(cls, body: bytes) -> RobotsTxt:
        """Parse a body, which may be any bytes of any size: the fetch has cut it. Never raises."""
        return cls(Contents(body))

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, in the order of the file."""
        return tuple(self._merged_group([span]) for _, span in self._contents.groups())

    @property
    def sitemaps(self) -> list[str]:
        """The values of the ``Sitemap`` lines, in the order of the file."""
        return [as_text(value) for value in self._contents.sitemaps]

    def group_for(self, *tokens: str) -> Group | None:
        """Return the group that applies to a crawler; None if there is none (RFC 9309 §2.2.1).

        The group of the first token that has a group applies, else the group of ``*``. Several
        groups of one token are merged. A group of another token is never merged with that of ``*``.
        """
        spans = self._whole_groups(tokens)
        return self._merged_group(spans) if spans else None

    def fields_for(self, *tokens: str, names: Collection[str] = ()) -> tuple[Field, ...]:
        """Return the lines with other fields, such as ``Crawl-delay``, that apply to a crawler.

        With *names*, in lower case, return only lines with these fields. A field between two
        ``User-agent`` lines applies only to the ``User-agent`` lines directly above it, as authors
        mean it, while the rules below apply to all crawlers of the group.
        """
        if names and not any(self._contents.mentions(name.encode()) for name in names):
            return ()
        token, spans = self._name_and_spans(tokens)
        fields = []
        for span in spans:
            is_ours = False
            for line, is_next in self._contents.agents_and_fields(span, tuple(names)):
                if line.kind is LineKind.USER_AGENT:
                    is_ours = (is_ours and is_next) or token in names_in_agent(line.value.lower())
                elif is_ours and line.kind is LineKind.OTHER:
                    fields.append(_field(line))
        return tuple(field for field in fields if not names or field.name in names)

    def rules_for(self, *tokens: str) -> RuleSet:
        """Return the compiled rules of the group of ``group_for``; no rules if that is None."""
        if self._last and self._last[0] == tokens:
            return self._last[1]
        _, spans = self._name_and_spans(tokens)
        rules = RuleSet(*self._contents.rules(spans))
        self._last = tokens, rules
        return rules

    def verdict(self, url: str, *tokens: str) -> Verdict:
        """Return whether a crawler may fetch a URL, and why; its origin is not compared."""
        return self.rules_for(*tokens).verdict_for(target_of(url))

    def explain(self, target: str, *tokens: str) -> Explanation:
        """Return the verdict on a canonical target, and how it was found."""
        name, spans = self._name_and_spans(tokens)
        token = next((each for each in tokens if _names_of((each,))[0] == name), ANYONE)
        rules = tuple(matching_rules(*self._contents.rules(spans), target))
        verdict = self.rules_for(*tokens).verdict_for(target)
        group = self.group_for(*tokens)
        return Explanation(target, tokens, token if spans else None, group, rules, verdict)

    def usage_lines_for(self, *tokens: str) -> UsageLines:
        """Return the lines with usage preferences that apply to a crawler.

        A line between ``User-agent`` lines of a group applies to all of its crawlers. Of the lines
        above the first ``User-agent`` line, some apply, too: see ``usage_lines``.
        """
        if not any(self._contents.mentions(field.encode()) for field in USAGE_FIELDS):
            return NO_USAGE_LINES
        lines = partial(self._contents.fields, names=USAGE_FIELDS)
        ours = chain.from_iterable(map(lines, self._whole_groups(tokens)))
        end = len(self._contents.text) + 1
        stop = next((span.start for _, span in self._contents.groups()), end)
        return usage_lines(ours, lines(Span(1, 1, stop)))

    def usage(self, url: str, *tokens: str) -> Usage:
        """Return the usage preferences of a URL of this site; only licenses if it is disallowed."""
        target = target_of(url)
        usage = read(self.usage_lines_for(*tokens), target, tokens)
        is_allowed = self.rules_for(*tokens).verdict_for(target).allowed
        return usage if is_allowed else usage.licenses()

    def _whole_groups(self, tokens: tuple[str, ...]) -> list[Span]:
        name, _ = self._name_and_spans(tokens)
        return [
            span
            for agents, span in self._contents.groups()
            if any(name in names_in_agent(agent) for agent in agents)
        ]

    def _name_and_spans(self, tokens: tuple[str, ...]) -> tuple[bytes, list[Span]]:
        """Return the first name that has groups, else ``*``; their spans, if any, from it on."""
        if self._last_named and self._last_named[0] == tokens:
            return self._last_named[1:]
        names = _names_of(tokens)
        spans: dict[bytes, list[Span]] = {}
        for agents, span in self._contents.groups(*names):
            for name in {name for agent in agents for name in names_in_agent(agent)}:
                before = spans.setdefault(name, [])
                if before and before[-1].stop == span.start:
                    number, start, _ = before[-1]
                    before[-1] = Span(number, start, span.stop)
                else:
                    before.append(span)
        name = next((name for name in names if name in spans), names[-1])
        self._last_named = tokens, name, spans.get(name, [])
        return self._last_named[1:]

    def _merged_group(self, spans: list[Span]) -> Group:
        lines = [line for span in spans for line in self._contents.fields(span)]
        agents = tuple(_field(line) for line in lines if line.kind is LineKind.USER_AGENT)
        others = tuple(_field(line) for line in lines if line.kind is LineKind.OTHER)
        return Group(agents, rules_of(*self._contents.rules(spans)), others)


@lru_cache
def _names_of(tokens: tuple[str, ...]) -> tuple[bytes, ...]:
    """Return the names of a crawler in the form that is compared, and ``*`` at the end."""
    # bytes.lower() changes only ASCII letters; the values in the file are changed in the same way.
    return tuple(token.encode("utf-8", "surrogatepass").lower() for token in (*tokens, ANYONE))


@lru_cache
def names_in_agent(agent: bytes) -> tuple[bytes, ...]:
    """Return the names, maybe none, in a lower-case ``User-agent`` value, the longest name last.

    One name is the product token at the beginning (SPEC G-3). Some crawlers have a name with
    digits, dots or letters outside ASCII; so the text with these characters is a name, too.
    """
    if _ANYONE(agent):
        return (b"*",)
    text = agent.decode("utf-8", "replace")
    forms = (_TOKEN(text), _WIDE_TOKEN(text))
    return tuple(dict.fromkeys(form[0].encode() for form in forms if form))


def _field(line: Line) -> Field:
    return Field(as_text(line.field.lower()), as_text(line.value), line.number)
