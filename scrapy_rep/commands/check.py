"""What ``scrapy robots check`` prints: a line for each URL."""

from __future__ import annotations

import json
from time import time
from typing import TYPE_CHECKING, Final

from scrapy_rep.commands.terminal import FINE, FOUND, UNKNOWN, ago, coloured, with_scheme
from scrapy_rep.decision.decider import verdict_of_rules
from scrapy_rep.exceptions import explain
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.text import printable

if TYPE_CHECKING:
    from scrapy_rep.commands.spider import Answer
    from scrapy_rep.decision.spellings import Spellings
    from scrapy_rep.protocol.matching.ruleset import RuleSet

_UNKNOWN_REASONS: Final = {Reason.UNREACHABLE, Reason.ERROR, Reason.CLOSING}


def verdict_of(rules: RuleSet, url: str, name: str, spellings: Spellings) -> Verdict | ValueError:
    """Return what ``rules``, of a file of that name, say of a URL, or why it can have none."""
    try:
        origin_of(url)
    except ValueError as error:
        return error
    return verdict_of_rules(rules, url, spellings)._replace(robotstxt_url=name)


def status_of(verdict: Verdict | ValueError) -> int:
    """Return the exit status that a verdict, or the lack of one, stands for."""
    if isinstance(verdict, ValueError) or verdict.reason in _UNKNOWN_REASONS:
        return UNKNOWN
    return FINE if verdict.allowed else FOUND


_WORDS: Final = {FINE: "allowed", FOUND: "disallowed", UNKNOWN: "can't tell"}


def line(url: str, answer: Answer, started: float, *, as_json: bool) -> str:
    """Return a line for people, or for programs, of a command that ``started`` then."""
    verdict, asked_at = answer
    status = status_of(verdict)
    remembered = None if asked_at is None else asked_at < started
    if isinstance(verdict, ValueError):
        if as_json:
            return json.dumps({"url": url, "error": str(verdict)})
        word = coloured(_WORDS[status], f"{_WORDS[status]:10}")
        return f"{word}  {printable(url)}  {printable(str(verdict))}{with_scheme(url)}"
    if as_json:
        return json.dumps({"url": url, **verdict.as_dict(), "from_store": remembered})
    word = coloured(_WORDS[status], f"{_WORDS[status]:10}")
    how = ""
    if asked_at is not None:
        how = f", remembered from {ago(time() - asked_at)}" if remembered else ", asked just now"
    return f"{word}  {printable(url)}  {printable(explain(verdict))}{how}"
