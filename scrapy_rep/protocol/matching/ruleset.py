"""The compiled rules for one crawler, for finding the rule that decides (RFC 9309 §2.2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from sys import getsizeof
from typing import Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.lexer import as_text
from scrapy_rep.protocol.matching.effort import Effort, TooCostlyError
from scrapy_rep.protocol.matching.literals import END, HEAD, Literals
from scrapy_rep.protocol.matching.packed import precedence
from scrapy_rep.protocol.matching.wildcards import Wildcards
from scrapy_rep.protocol.origin import ROBOTSTXT
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Rule, Verdict

_NO_RULE: Final = Verdict(allowed=True, reason=Reason.NO_RULE)
_TOO_COSTLY: Final = Verdict(allowed=False, reason=Reason.TOO_COSTLY)
_VERDICTS: Final = 256
"""Number of verdicts in the LRU cache. All URLs for which one rule decides share a verdict."""
_INDEX_FILE: Final = "/index.htm"
_FIRST: Final = ("/", "*")
"""First characters of patterns that can match (SPEC M-1)."""
_BEHIND_SLASH: Final = chr(ord("/") + 1)
_NO_LITERALS: Final = Literals([], {}, {})
_NO_WILDCARDS: Final = Wildcards({})


def rules_of(values: Sequence[bytes], words: Sequence[int]) -> Iterator[Rule]:
    """Yield the rules with these values, as written, and these words.

    A word is an integer: twice the line number, plus one for ``Allow``.
    """
    patterns = canonical_patterns(b"\n".join(values)).split("\n")
    for pattern, value, word in zip(patterns, values, words, strict=False):
        yield Rule(bool(word & 1), pattern, as_text(value), word >> 1)


class RuleSet:
    """The compiled rules for one crawler: immutable, and small in memory."""

    __slots__ = ("_literals", "_raws", "_wildcards")

    def __init__(self, patterns: dict[str, int], raws: dict[str, bytes]) -> None:
        """``patterns`` has for each pattern an int that encodes its rule (see ``rules_of``).

        ``raws`` has, by pattern, the values as written that differ from their pattern.
        """
        literals = dict(patterns)
        literals.pop("", None)
        tails: dict[str, str] = {}
        wildcards: dict[str, int] = {}
        for pattern in [pattern for pattern in patterns if "*" in pattern]:
            word = literals.pop(pattern)
            text = pattern.rstrip("*$")
            if not pattern.startswith(_FIRST):
                continue
            if "*" in text:
                wildcards[pattern] = word
                continue
            other = text + tails.get(text, ""), literals.get(text, 0)
            if precedence((pattern, word)) > precedence(other):
                tails[text] = pattern[len(text) :]
                literals[text] = word
        texts = sorted(literals)
        # Only texts that begin with '/', and the empty text of the pattern '*', can match (SPEC
        # M-1). All other texts are at the two ends of the sorted list.
        if texts and (texts[0] < "/" or texts[-1] >= _BEHIND_SLASH):
            texts = [text for text in texts if not text or text.startswith("/")]
        self._literals = Literals(texts, literals, tails) if texts else _NO_LITERALS
        self._wildcards = Wildcards(wildcards) if wildcards else _NO_WILDCARDS
        self._raws = raws or None

    @classmethod
    def compile(
        cls, values: Sequence[bytes], words: Sequence[int], *, index_files: bool = True
    ) -> RuleSet:
        """Compile the rules of a group from their values, as written, and their words.

        With *index_files*, an ``Allow`` whose last segment begins with ``index.htm`` also allows
        the directory itself, as in Google's parser.
        """
        written = b"\n".join(values)
        form = canonical_patterns(written)
        patterns = form.split("\n")
        chosen = dict(zip(patterns, words, strict=False))
        if len(chosen) < len(words):
            chosen = _deciding_words(patterns, words)
        # Most values already are in canonical form.
        is_as_written = form.encode() == written
        if index_files and _INDEX_FILE in form:
            is_as_written &= not _add_directories(chosen)
        return cls(chosen, {} if is_as_written else _raws_by_pattern(chosen, values, words))

    def __bool__(self) -> bool:
        """Whether any rule can match."""
        return self._literals is not _NO_LITERALS or self._wildcards is not _NO_WILDCARDS

    @property
    def nbytes(self) -> int:
        """Estimated size in memory, in bytes."""
        literals = 0 if self._literals is _NO_LITERALS else self._literals.nbytes
        wildcards = 0 if self._wildcards is _NO_WILDCARDS else self._wildcards.nbytes
        raws = chain(*(self._raws or {}).items())
        return literals + wildcards + sum(map(getsizeof, (self, self._raws, *raws)))

    def verdict_for(self, target: str, effort: Effort | None = None) -> Verdict:
        """Return whether a target may be fetched, and the rule that decides.

        *target* is canonical, as ``target_of`` returns it. The longest pattern that matches
        decides, and of patterns of the same length an ``Allow``. *effort* is the budget of steps
        that all spellings of a URL share. If it is used up, the target is disallowed.
        """
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        deciding = None
        literals, wildcards = self._literals, self._wildcards
        # For most targets these fast checks find that no rule matches.
        heads, begins = literals.heads, literals.begins
        if (heads and target[HEAD] in heads) or (begins and target.startswith(begins)):
            deciding = literals.decide(target + END)
        begins = wildcards.begins
        try:
            if begins and target.startswith(begins):
                deciding = wildcards.decide(target, deciding, effort)
            else:
                for part in wildcards.parts:
                    if part in target:
                        deciding = wildcards.decide(target, deciding, effort)
                        break
        except TooCostlyError:
            return _TOO_COSTLY
        if deciding is None:
            return _NO_RULE
        pattern, word = deciding
        return _verdict_of(pattern, word, self._raws.get(pattern) if self._raws else None)


@lru_cache(_VERDICTS)
def _verdict_of(pattern: str, word: int, raw: bytes | None) -> Verdict:
    rule = Rule(bool(word & 1), pattern, pattern if raw is None else as_text(raw), word >> 1)
    return Verdict(rule.allow, Reason.RULE, rule)


def _raws_by_pattern(
    patterns: dict[str, int], values: Sequence[bytes], words: Sequence[int]
) -> dict[str, bytes]:
    """Return the values, as written, that differ from their patterns; by pattern."""
    value_of = dict(zip(words, values, strict=True))
    return {
        pattern: value_of[word]
        for pattern, word in patterns.items()
        if value_of[word] != pattern.encode()
    }


def _deciding_words(patterns: Sequence[str], words: Sequence[int]) -> dict[str, int]:
    """Return the word of the rule that decides for each pattern.

    It is the first ``Allow`` with the pattern, else the first ``Disallow``.
    """
    first = dict.fromkeys(patterns, 0)
    rules = list(zip(reversed(patterns), reversed(words), strict=True))
    first.update(rules)
    first.update((pattern, word) for pattern, word in rules if word & 1)
    return first


def matching_rules(rules: Iterable[Rule], target: str) -> Iterator[Rule]:
    """Yield all of ``rules`` that match ``target``.

    An ``Allow`` of an index file also matches its directory; then the directory is its pattern.
    """
    for rule in rules:
        patterns = {rule.pattern: 2 * rule.line + rule.allow}
        _add_directories(patterns)
        found = RuleSet(patterns, {}).verdict_for(target).rule
        if found:
            yield found._replace(raw=rule.raw)


def _add_directories(rules: dict[str, int]) -> bool:
    """Add rules that allow the directories of allowed index files, as in Google's parser.

    Return whether any rule was added.
    """
    added = False
    for pattern in [pattern for pattern in rules if _INDEX_FILE in pattern]:
        folder, _, name = pattern.rpartition("/")
        directory = f"{folder}/$"
        word = rules[pattern]
        if (
            name.startswith(_INDEX_FILE[1:])
            and word & 1
            and precedence((directory, word)) > precedence((directory, rules.get(directory, 0)))
        ):
            rules[directory] = word
            added = True
    return added
