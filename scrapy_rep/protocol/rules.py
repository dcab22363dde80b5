"""The rules for one crawler: the longest pattern that matches decides (RFC 9309 §2.2.2).

To compare a target with thousands of patterns takes too long, so patterns are filed by their text.
Few patterns are filed for the second target, as many sites of a broad crawl have one page. Matching
doesn't use regular expressions, as the time of these may grow exponentially.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain, compress
from operator import itemgetter
from sys import getsizeof, maxsize
from typing import Final

from scrapy_rep.protocol.canonical import (
    QUERY_DATA,
    Target,
    as_query_data,
    canonical_patterns,
    written_patterns,
)
from scrapy_rep.protocol.lexer import as_text
from scrapy_rep.protocol.limits import MAX_WORK
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Rule, Verdict

_NO_RULE: Final = Verdict(allowed=True, reason=Reason.NO_RULE)
_TOO_COSTLY: Final = Verdict(allowed=False, reason=Reason.TOO_COSTLY)
_INDEX_FILE: Final = "/index.htm"
_directory_of: Final = re.compile(r"(.*/)index\.htm[^/]*").fullmatch
_QUERY_DATA: Final = re.compile("|".join(QUERY_DATA))
_LONE_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_NEEDLE: Final = 6
"""Maximum length of a needle: the end of a part, as patterns differ there."""
_FEW: Final = 128
"""Number of beginnings, or needles, up to which a target is compared with each of them."""
_LONE_WORK: Final = 512
"""Characters that a rule with a lone ``%`` counts for MAX_WORK, as none is filed. No real file has
more than three of them."""
_VERDICTS: Final = 256
"""Number of verdicts in the LRU cache. All URLs for which one rule decides share a verdict."""
_FILED_BYTES: Final = 61
_WILD_BYTES: Final = 130
"""Approximate bytes of memory that it takes to file a pattern, and in addition one with a ``*``."""

_Ranked = tuple[int, int, int, str]
"""A rule that matches. The greatest decides: the one with the longest pattern; among those, an
``Allow``; among those, the first in the file (SPEC M-4). The last item is the pattern; the one
before it is the negative word: twice the line number, plus one for ``Allow``."""


def _ranked(pattern: str, word: int) -> _Ranked:
    return len(pattern), word & 1, -word, pattern


def is_match(pattern: str, target: str, *, as_written: bool = False) -> bool:
    """Return whether a pattern matches a target, both canonical; an empty one matches all.

    Each part between two ``*`` is searched for after the part before it. The first place at which
    it is found is always the best, so there is no backtracking.

    A part behind a ``*`` may be in the path or in the query of the target. The escapes in
    ``QUERY_DATA`` are only in paths; in the query, their characters match, unless both are
    ``as_written``. If a part is found in the path, it ends before it would in the query.
    """
    if "*" not in pattern:
        # A $ can only be equal to that at the end of a pattern, as a canonical target has none.
        return target.startswith(pattern) or f"{target}$" == pattern
    while "**" in pattern:  # the same as one, and each costs a search
        pattern = pattern.replace("**", "*")
    first, *parts = pattern.split("*")
    if not target.startswith(first):
        return False
    end = parts.pop()[:-1] if pattern.endswith("$") else None
    position = len(first)
    for part in parts:
        text, found = part, target.find(part, position)
        if found < 0 and "%" in part and not as_written:
            text, position = _in_query(part, target, position)
            found = target.find(text, position)
        if found < 0:
            return False
        position = found + len(text)
    if end is None or target.endswith(end, position):
        return True
    return "%" in end and not as_written and target.endswith(*_in_query(end, target, position))


def _in_query(part: str, target: str, position: int) -> tuple[str, int]:
    """Return a part in the form that it has in a query, and from where to search for it."""
    query = target.find("?") + 1 or len(target)
    return as_query_data(part), max(position, query)


class _Index:
    """Patterns and words, filed by the text of the patterns.

    A pattern without a ``*`` is a beginning of targets, and so is the text before the first one.
    If that is short, or has another pattern, the pattern is filed by its needle instead, which all
    targets that match contain.

    Most targets have none of few beginnings, which takes one call to see. Those of a target are the
    last one, in their order, that isn't greater, and outer ones, with which their next one begins.
    """

    __slots__ = ("_begins", "_outermost", "_rules", "_sizes", "_sorted", "_words", "few", "needles")

    def __init__(self, lines: Sequence[str], words: Sequence[int]) -> None:
        word_of = dict(zip(lines, words, strict=False))
        if len(word_of) < len(words):  # of equal patterns, the first Allow decides, or the first
            rules = [*zip(lines, words, strict=True)][::-1]
            word_of = dict(rules) | {line: word for line, word in rules if word & 1}
        word_of.pop("", None)  # a rule without a path matches nothing
        filed: dict[str, list[str]] = {}
        needles = set()
        for pattern in [pattern for pattern in word_of if "*" in pattern]:
            word = word_of.pop(pattern)
            text = pattern.rstrip("*$")
            begin = text.partition("*")[0]
            if begin == text or (len(begin) >= _NEEDLE and begin not in filed):
                text = begin
                word_of.setdefault(begin, 0)
            else:
                # In a query, some escapes match a character.
                parts = (_QUERY_DATA.sub("*", text) if "%" in text else text).split("*")
                if len(parts[-1]) < _NEEDLE:
                    parts.sort(key=len)
                text = parts[-1][-_NEEDLE:] or "/"
                needles.add(text)
            filed.setdefault(text, []).append(f"{pattern}\n{word}\n")
        self._begins = tuple(sorted(word_of))
        # All targets begin with "": of many beginnings, those of each target are searched.
        begins = [begin.removesuffix("$") for begin in self._begins]
        self.few = tuple(begins) if len(begins) <= _FEW else ("",)
        self._words = array("I", map(word_of.__getitem__, self._begins))
        outer = _outer(self._begins)
        self._sorted = (self._begins, outer) if outer else (self._begins,)
        self._outermost = _outer(outer)
        self._rules = {text: "".join(rules) for text, rules in filed.items()}
        self.needles = tuple(needles)
        self._sizes = tuple(set(map(len, needles))) if len(needles) > _FEW else ()

    def matching(self, target: str) -> list[_Ranked]:
        """Return the rules that match; of those with equal patterns, only the one that decides."""
        found: list[_Ranked] = []
        rules = ""
        if target.startswith(self.few):
            # A $ at the end of a pattern is equal to this one, as canonical targets contain none.
            for text in self._beginnings_of(f"{target}$"):
                if word := self._words[bisect_left(self._begins, text)]:
                    found.append(_ranked(text, word))
                if text in self._rules:
                    rules += self._rules[text]
        for needle in self._needles_of(target) if self._sizes else self.needles:
            if needle in target:
                rules += self._rules[needle]
        if rules:
            lines = rules.split("\n")
            for pattern, digits in zip(lines[::2], lines[1::2], strict=False):
                if is_match(pattern, target):
                    found.append(_ranked(pattern, int(digits)))
        return found

    def _beginnings_of(self, ended: str) -> list[str]:
        near = [texts[bisect_right(texts, ended) - 1] for texts in self._sorted]
        return [begin for begin in (*near, *self._outermost) if ended.startswith(begin)]

    def _needles_of(self, target: str) -> Collection[str]:
        ats = range(len(target))
        return self._rules.keys() & {target[at : at + n] for n in self._sizes for at in ats}


def _outer(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the sorted texts with which the next one begins."""
    return tuple(compress(texts, map(str.startswith, texts[1:], texts))) if texts else ()


class RuleSet:
    """The rules for one crawler; ``verdict_for`` decides on a target."""

    __slots__ = (
        "_begins",
        "_index",
        "_is_scanned",
        "_lone",
        "_longest",
        "_patterns",
        "_raws",
        "_words",
        "nbytes",
    )

    def __init__(self, values: Sequence[bytes], words: Sequence[int]) -> None:
        """``values`` and ``words`` are as for ``rules_of``."""
        written = b"\n".join(values)
        patterns = canonical_patterns(written)
        lines: Sequence[str] = patterns.split("\n")
        # Rules with a % that begins no escape. A target in canonical form may have lost the escape
        # whose % such a rule matches, so they are also compared with the target as written.
        self._lone: Sequence[tuple[str, str, int]] = ()
        if _LONE_PERCENT(written):
            rules = zip(written_patterns(written).split(b"\n"), lines, words, strict=False)
            self._lone = [
                (form.decode(), line, word) for form, line, word in rules if _LONE_PERCENT(form)
            ]
        if _INDEX_FILE in patterns:
            # As in Google's parser, an Allow of an index file also allows its directory.
            rules_of_file = list(zip(values, lines, words, strict=False))
            directories = [
                (value, f"{found[1]}$", word)
                for value, line, word in rules_of_file
                if word & 1 and (found := _directory_of(line))
            ]
            rules_of_file = sorted([*rules_of_file, *directories], key=itemgetter(2))
            values, lines, words = zip(*rules_of_file, strict=True)
            patterns = "\n".join(lines)
        self._raws: dict[int, bytes] = {}
        if patterns.encode() != written:  # most values already are in canonical form
            pairs = zip(words, values, lines, strict=False)
            self._raws = {word: raw for word, raw, line in pairs if raw != line.encode()}
        self._patterns = patterns
        self._words = array("I", words)
        self._index: _Index | None = None
        self._begins: tuple[str, ...] = ("",)
        """With the index, the beginnings without which no rule matches; all begin with ""."""
        self._is_scanned = len(words) > _FEW
        """Whether the next target has an index."""
        wild = [line for line in lines if "*" in line]
        lone = [form for form, *_ in self._lone if "*" in form]
        work = sum(map(len, wild + lone)) + _LONE_WORK * len(self._lone)
        self._longest = MAX_WORK // work if work else maxsize
        parts = chain([self, patterns, self._raws, self._lone], *self._raws.items(), *self._lone)
        self.nbytes: int = sum(map(getsizeof, parts))
        """Estimated size in memory, in bytes."""
        self.nbytes += _FILED_BYTES * len(words) + _WILD_BYTES * len(wild) + 64 * len(self._lone)

    def verdict_for(self, target: str) -> Verdict:
        """Return whether a target may be fetched, and the rule that decides.

        *target* is canonical, as ``target_of`` returns it. ``/robots.txt`` is allowed. Otherwise
        the longest pattern that matches decides, and of patterns of the same length an ``Allow``.
        If matching would take too much work, the target is disallowed.
        """
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        if len(target) > self._longest:
            return _TOO_COSTLY
        if not target.startswith(self._begins):
            return _NO_RULE  # as most targets
        found = self._scan(target) if self._index is None else self._index.matching(target)
        if self._lone and isinstance(target, Target):
            found += [
                _ranked(pattern, word)
                for form, pattern, word in self._lone
                if is_match(form, target.written, as_written=True)
            ]
        if not found:
            return _NO_RULE
        _, _, word, pattern = max(found)
        return _verdict_of(pattern, -word, self._raws.get(-word))

    def _scan(self, target: str) -> list[_Ranked]:
        """Return the rules that match: of few patterns, the first time without an index."""
        lines, words, ended = self._patterns.split("\n"), self._words, f"{target}$"
        if self._is_scanned:
            self._index = self._index or _Index(lines, words)  # another thread may have made it
            if not (self._index.needles or self._lone):
                self._begins = self._index.few
            self._patterns, self._words = "", array("I")
            return self._index.matching(target)
        self._is_scanned = True
        return [
            _ranked(line, word)
            for line, word in zip(lines, words, strict=False)
            if line and (ended.startswith(line) or ("*" in line and is_match(line, target)))
        ]


@lru_cache(_VERDICTS)
def _verdict_of(pattern: str, word: int, raw: bytes | None) -> Verdict:
    rule = _rule_of(pattern, word, raw)
    return Verdict(rule.allow, Reason.RULE, rule)


def _rule_of(pattern: str, word: int, raw: bytes | None) -> Rule:
    return Rule(bool(word & 1), pattern, pattern if raw is None else as_text(raw), word >> 1)


def rules_of(values: Sequence[bytes], words: Sequence[int]) -> tuple[Rule, ...]:
    """Return the rules with these values, as written, and words.

    A word is an integer: twice the line number, plus one for ``Allow``.
    """
    return tuple(map(_rule_of, canonical_patterns(b"\n".join(values)).split("\n"), words, values))


def matching_rules(values: Sequence[bytes], words: Sequence[int], target: str) -> list[Rule]:
    """Return all of these rules, as for ``rules_of``, that match; the first one decides.

    An ``Allow`` of an index file also matches its directory, which then is its pattern.
    """
    pairs = zip(values, words, strict=True)
    verdicts = (RuleSet((value,), (word,)).verdict_for(target) for value, word in pairs)
    rules = [verdict.rule for verdict in verdicts if verdict.rule is not None]
    return sorted(rules, key=lambda rule: (-len(rule.pattern), not rule.allow, rule.line))
