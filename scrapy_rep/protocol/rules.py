"""The rules for one crawler: the longest pattern that matches decides (RFC 9309 §2.2.2).

To compare a target with thousands of patterns takes too long. So the patterns are filed: each under
the text before its first ``*``, cut to a few characters, and looked up by the beginnings of the
target. A pattern with such a text that is short is filed under a text that its targets contain.

Matching doesn't use regular expressions, as the time of these may grow exponentially.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from sys import getsizeof, maxsize
from typing import Any, Final

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
_FIRST: Final = ("/", "*")
"""First characters of patterns that can match (SPEC M-1)."""
_INDEX_FILE: Final = "/index.htm"
_QUERY_DATA: Final = re.compile("|".join(QUERY_DATA))
_LONE_PERCENT: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_SCANS: Final = 4
"""Number of verdicts without an index. Building the index takes about as long as five of them."""
_MAX_SCAN: Final = 2**24
"""Length of all patterns times length of a target above which the index is always used. So no
verdict without an index takes much longer than 10 ms."""
_SHORT: Final = 4
"""Length of keys in small groups. A shorter text before a ``*`` is no key, as too many targets
begin with it."""
_LONGEST_KEY: Final = 32
_MANY: Final = 64
"""Number of patterns up to which a group is small."""
_NEEDLE: Final = 6
"""Maximum length of a text that targets contain: the end of a part, as patterns differ there."""
_FEW: Final = 128
"""Number of such texts up to which a target is searched for each of them."""
_VERDICTS: Final = 256
"""Number of verdicts in the LRU cache. All URLs for which one rule decides share a verdict."""
_INDEX_BYTES: Final = 500
_KEY_BYTES: Final = 150
"""Approximate bytes of memory for an index, and in addition for each of its keys."""

_EMPTY: Final[dict[Any, Any]] = {}
_Ranked = tuple[int, int, int, str]
"""A rule that matches. The greatest decides: the one with the longest pattern; among those, an
``Allow``; among those, the first in the file (SPEC M-4). The last item is the pattern; the one
before it is the negative word: twice the line number, plus one for ``Allow``."""
_NONE: Final[_Ranked] = (0, 0, 0, "")


def _ranked(pattern: str, word: int) -> _Ranked:
    return len(pattern), word & 1, -word, pattern


def is_match(pattern: str, target: str) -> bool:
    """Return whether a canonical pattern matches a canonical target; an empty one matches all."""
    if "*" in pattern:
        return _matches_parts(pattern, target)
    # A $ can only be equal to the $ at the end of the pattern, as canonical targets contain none.
    return target.startswith(pattern) or f"{target}$" == pattern


def _matches_parts(pattern: str, target: str) -> bool:
    """Return whether a canonical pattern with ``*`` matches a canonical target.

    Each part between two ``*`` is searched for after the part before it. The first place at which
    it is found is always the best, so there is no backtracking.

    A part behind a ``*`` may be in the path or in the query of the target. The escapes in
    ``QUERY_DATA`` are only in paths; in the query, their characters match. If a part is found in
    the path, it ends before it would in the query.
    """
    while "**" in pattern:  # the same as one, and each costs a search
        pattern = pattern.replace("**", "*")
    first, *parts = pattern.split("*")
    if not target.startswith(first):
        return False
    end = parts.pop()[:-1] if pattern.endswith("$") else None
    position = len(first)
    for part in parts:
        text, found = part, target.find(part, position)
        if found < 0 and "%" in part:
            text, position = _in_query(part, target, position)
            found = target.find(text, position)
        if found < 0:
            return False
        position = found + len(text)
    return (
        end is None
        or target.endswith(end, position)
        or ("%" in end and target.endswith(*_in_query(end, target, position)))
    )


def _in_query(part: str, target: str, position: int) -> tuple[str, int]:
    """Return a part in the form that it has in a query, and from where to search for it."""
    query = target.find("?") + 1 or len(target)
    return as_query_data(part), max(position, query)


def _needle_of(pattern: str) -> str:
    """Return the end of the longest part of ``pattern``, which all targets that match contain."""
    parts = pattern.rstrip("*$").split("*")
    if "%" in pattern:  # behind a *, some escapes match a character in queries
        parts[1:] = chain.from_iterable(map(_QUERY_DATA.split, parts[1:]))
    return max(reversed(parts), key=len)[-_NEEDLE:] or "/"


class RuleSet:
    """The rules for one crawler; ``verdict_for`` decides on a target.

    For the first verdicts, the target is compared with all patterns, as most sites of a broad crawl
    have few pages. Then the rules are filed: those with one key are joined to one str, in which the
    line behind each pattern is its word, to save memory.
    """

    __slots__ = (
        "_filed",
        "_lengths",
        "_lone",
        "_longest",
        "_needles",
        "_patterns",
        "_raws",
        "_scans",
        "_sizes",
        "_words",
    )

    def __init__(
        self, values: Sequence[bytes], words: Sequence[int], *, index_files: bool = True
    ) -> None:
        """``values`` and ``words`` are as for ``rules_of``, *index_files* as for ``RobotsTxt``."""
        written = b"\n".join(values)
        patterns = canonical_patterns(written)
        if index_files and _INDEX_FILE in patterns:
            written, patterns, words = _with_directories(values, words)
        self._patterns = patterns
        self._words: Sequence[int] = array("I", words)
        self._scans = _SCANS
        self._raws: Mapping[int, bytes] = _EMPTY
        if patterns.encode() != written:  # most values already are in canonical form
            rules = zip(words, written.split(b"\n"), patterns.split("\n"), strict=False)
            self._raws = {word: raw for word, raw, pattern in rules if raw != pattern.encode()}
        self._lone: Sequence[tuple[str, str, int]] = ()
        if b"%" in written:
            self._lone = tuple(_with_lone_percent(written, patterns, words))
        starred = sum([len(form) for form, _, _ in self._lone if "*" in form])
        if "*" in patterns:
            starred += sum([len(each) for each in patterns.split("\n") if "*" in each])
        self._longest = MAX_WORK // starred if starred else maxsize
        self._filed: dict[str, str] | None = None
        self._needles: Collection[str] = ()
        self._lengths: Collection[int] = ()
        self._sizes: Collection[int] = ()

    @property
    def nbytes(self) -> int:
        """Estimated size in memory, in bytes, with the index, even if it is not built yet."""
        parts = [self, self._patterns, self._words, self._lone, self._raws]
        parts += [self._filed, self._needles, self._lengths, self._sizes]
        items = chain(self._lone, self._raws.items(), (self._filed or _EMPTY).items())
        own: int = sum(map(getsizeof, filter(None, chain(parts, chain.from_iterable(items)))))
        if self._filed is not None:
            return own
        patterns = self._patterns.split("\n")
        is_small = len(patterns) <= _MANY
        keys = {pattern[:_SHORT] for pattern in patterns} if is_small else patterns
        return own + _INDEX_BYTES + _KEY_BYTES * len(keys)

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
        filed = self._filed
        if filed is None and (filed := self._file_if_due(target)) is None:
            best = self._scan(target)
        else:
            rules = ""
            for length in self._lengths:
                rules += filed.get(target[:length], "")
            for needle in _needles_in(target, self._sizes, filed) if self._sizes else self._needles:
                if needle in target:
                    rules += filed[needle]
            if not (rules or self._lone):
                return _NO_RULE
            best = _best_of(rules, target)
        if self._lone and isinstance(target, Target):
            best = max([best, *_as_written(self._lone, target)])
        if best is _NONE:
            return _NO_RULE
        _, _, word, pattern = best
        return _verdict_of(pattern, -word, self._raws.get(-word))

    def _scan(self, target: str) -> _Ranked:
        """Compare a target with all patterns."""
        patterns = self._patterns.split("\n")
        matching = set(_matching(self._patterns, patterns, target))
        matching.discard("")
        if not matching:
            return _NONE
        rules = zip(patterns, self._words, strict=False)
        return max([_ranked(*rule) for rule in rules if rule[0] in matching])

    def _file_if_due(self, target: str) -> dict[str, str] | None:
        if self._scans and len(self._patterns) * len(target) <= _MAX_SCAN:
            self._scans -= 1
            return None
        return self._file()

    def _file(self) -> dict[str, str]:
        """Build the index, in place of the list of patterns."""
        patterns = self._patterns.split("\n")
        word_of = dict(zip(patterns, self._words, strict=False))
        if len(word_of) < len(self._words):  # of equal patterns, the last in this order decides
            rules = zip(patterns, self._words, strict=True)
            word_of = dict(sorted(rules, key=lambda rule: (rule[1] & 1, -rule[1])))
        word_of.pop("", None)
        size = _key_size(word_of)
        keys: dict[str, list[str]] = {}
        lengths, needles = set(), set()
        for pattern, word in word_of.items():
            key, star, rest = pattern.partition("*")
            if star and len(key) < _SHORT and rest.strip("*$"):
                key = _needle_of(pattern)
                needles.add(key)
            else:
                key = key[:size].removesuffix("$")
                lengths.add(len(key))
            keys.setdefault(key, []).append(f"{pattern}\n{word}\n")
        self._filed = filed = {key: "".join(rules) for key, rules in keys.items()}
        self._lengths = tuple(lengths)
        if len(needles) <= _FEW:
            self._needles = tuple(needles)
        else:
            self._sizes = tuple(set(map(len, needles)))
        self._patterns, self._words = "", ()
        return filed


def _key_size(patterns: Collection[str]) -> int:
    """Return the size of keys with which the patterns with one key are few, or a maximum."""
    size = _SHORT
    while size < _LONGEST_KEY and len(patterns) > _MANY:
        counts = Counter([pattern[:size] for pattern in patterns]).values()
        if sum([count * count for count in counts]) <= 0.8 * len(patterns) ** 1.5:
            break
        size += 2
    return size


def _needles_in(target: str, sizes: Iterable[int], filed: dict[str, str]) -> Iterable[str]:
    return filed.keys() & {target[at : at + n] for n in sizes for at in range(len(target))}


def _best_of(rules: str, target: str) -> _Ranked:
    """Return the one that decides of some rules that are filed."""
    best = _NONE
    lines = rules.splitlines()
    for pattern in _matching(rules, lines, target):
        rule = _ranked(pattern, int(lines[lines.index(pattern) + 1]))
        if rule > best:  # noqa: PLR1730 - max takes longer
            best = rule
    return best


def _matching(text: str, lines: list[str], target: str) -> list[str]:
    """Return those of the lines of ``text`` that are patterns and match."""
    # A pattern that ends with $ is the beginning of the one target that it matches, and $.
    matching = list(filter(f"{target}$".startswith, lines))
    if "*" in text:
        matching += [line for line in lines if "*" in line and _matches_parts(line, target)]
    return matching


@lru_cache(_VERDICTS)
def _verdict_of(pattern: str, word: int, raw: bytes | None) -> Verdict:
    rule = Rule(bool(word & 1), pattern, pattern if raw is None else as_text(raw), word >> 1)
    return Verdict(rule.allow, Reason.RULE, rule)


def _with_lone_percent(
    written: bytes, patterns: str, words: Sequence[int]
) -> Iterator[tuple[str, str, int]]:
    """Yield the rules with a ``%`` that begins no escape: as written, in canonical form, the word.

    In canonical form, a target may have lost the escape whose ``%`` such a rule matches.
    """
    if _LONE_PERCENT(written):
        forms = written_patterns(written).split(b"\n")
        for form, pattern, word in zip(forms, patterns.split("\n"), words, strict=False):
            if _LONE_PERCENT(form):
                yield form.decode(), pattern, word


def _as_written(lone: Iterable[tuple[str, str, int]], target: Target) -> Iterator[_Ranked]:
    """Yield the rules of ``_with_lone_percent`` that match the target as it is written."""
    for form, pattern, word in lone:
        if is_match(form, target.written):
            yield _ranked(pattern, word)


def rules_of(values: Sequence[bytes], words: Sequence[int]) -> Iterator[Rule]:
    """Yield the rules with these values, as written, and words.

    A word is an integer: twice the line number, plus one for ``Allow``.
    """
    patterns = canonical_patterns(b"\n".join(values)).split("\n")
    for pattern, value, word in zip(patterns, values, words, strict=False):
        yield Rule(bool(word & 1), pattern, as_text(value), word >> 1)


def matching_rules(values: Sequence[bytes], words: Sequence[int], target: str) -> tuple[Rule, ...]:
    """Return all of these rules, as for ``rules_of``, that match; the first one decides.

    An ``Allow`` of an index file also matches its directory; then the directory is its pattern.
    """
    written, patterns, words = _with_directories(values, words)
    raws = dict(zip(words, written.split(b"\n"), strict=False))
    found = {
        _ranked(pattern, word)
        for pattern, word in zip(patterns.split("\n"), words, strict=False)
        if pattern and is_match(pattern, target)
    }
    if isinstance(target, Target):
        found.update(_as_written(_with_lone_percent(written, patterns, words), target))
    return tuple(
        Rule(bool(allow), pattern, as_text(raws[-word]), -word >> 1)
        for _, allow, word, pattern in sorted(found, reverse=True)
    )


def rank_of(rule: Rule) -> tuple[int, bool, int]:
    """Return the sort key of a rule among those that match a target; the greatest decides."""
    return len(rule.pattern), rule.allow, -rule.line


def _with_directories(
    values: Sequence[bytes], words: Sequence[int]
) -> tuple[bytes, str, Sequence[int]]:
    """Return values, patterns and words of rules, and of the directories of index files.

    Values and patterns are joined, one per line. As in Google's parser, an ``Allow`` whose last
    segment begins with ``index.htm`` is followed by one for the directory itself.
    """
    written = b"\n".join(values)
    patterns = canonical_patterns(written)
    if _INDEX_FILE not in patterns:
        return written, patterns, words
    rules = []
    for pattern, value, word in zip(patterns.split("\n"), values, words, strict=False):
        rules.append((value, pattern, word))
        folder, slash, name = pattern.rpartition("/")
        if word & 1 and slash and name.startswith(_INDEX_FILE[1:]):
            rules.append((value, f"{folder}/$", word))
    all_values, all_patterns, all_words = zip(*rules, strict=True)
    return b"\n".join(all_values), "\n".join(all_patterns), all_words
