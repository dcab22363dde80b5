"""Compares the usage preferences of sites with the purposes that a crawl declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.exceptions import SettingsError, describe, describe_usage
from scrapy_rep.protocol.usage.statement import DISALLOW, PURPOSES, Value
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.signals import META_KEY, Announcer, robotstxt_usage
from scrapy_rep.utils.per_crawl import get_or_add_part
from scrapy_rep.utils.setting_readers import NotTakenError, several_of
from scrapy_rep.utils.text import printable_request

PURPOSES_KEY: Final = "robotstxt_purposes"
"""Name of the key of ``Request.meta``, and of the attribute of a spider, with purposes that replace
REP_PURPOSES."""
USAGE_KEY: Final = "usage"
"""Key of ``Request.meta["robotstxt"]`` with the judgement, as plain values."""
_purposes: Final = several_of(PURPOSES)


class Judgement(NamedTuple):
    """The usage preferences for a page, and the result for each declared purpose."""

    usage: Usage
    results: dict[str, Value]
    refused: bool
    """Whether the use of the page is refused: the result for a purpose is ``disallow``."""


class UsageJudge:
    """Compares usage preferences with declared purposes; only ``report`` counts and sends it."""

    def __init__(self, crawler: Crawler) -> None:
        """Raise SettingsError if the spider declares unknown purposes."""
        options = Options.of(crawler)
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self.drops: bool = options.usage_action == "drop"
        """Whether requests for refused pages are dropped."""
        self.drops_items: bool = options.usage_action != "record"
        """Whether the items of refused pages are dropped."""
        self.purposes: tuple[str, ...] = options.purposes
        """The purposes of requests that declare none."""
        named = getattr(crawler.spider, PURPOSES_KEY, None)
        if named is not None:
            self.purposes = _checked_purposes(named, "the spider", SettingsError)

    @classmethod
    def of(cls, crawler: Crawler) -> UsageJudge:
        """Return the instance of a crawl. Raises SettingsError as the constructor does."""
        return get_or_add_part(crawler, cls, lambda: cls(crawler))

    def purposes_of(self, request: Request) -> tuple[str, ...]:
        """Return the purposes of ``request``, else of the crawl; raise ValueError if unknown."""
        named = request.meta.get(PURPOSES_KEY)
        if named is None:
            return self.purposes
        return _checked_purposes(named, printable_request(request), ValueError)

    def judge(self, usage: Usage, purposes: Iterable[str]) -> Judgement:
        """Return the judgement on ``usage``, of which only the sources of the crawl are kept."""
        results = {purpose: usage.result(purpose) for purpose in purposes}
        return Judgement(usage, results, DISALLOW in results.values())

    def report(self, request: Request, judgement: Judgement) -> None:
        """Count the final judgement of a page in the stats, and send ``robotstxt_usage``."""
        if judgement.refused:
            stats.count(self._crawler, stats.USAGE_DISALLOWED)
        for purpose, result in judgement.results.items():
            stats.count(self._crawler, stats.USAGE_COUNT.format(purpose=purpose, result=result))
        self._announcer.send(robotstxt_usage, request=request, **judgement._asdict())


def _checked_purposes(named: Any, of: object, error: type[ValueError]) -> tuple[str, ...]:
    """Return the purposes that ``of`` has ``named``. Raises ``error`` if any isn't in PURPOSES."""
    try:
        found: tuple[str, ...] = _purposes.read(named)
    except (ValueError, TypeError) as refused:
        takes = refused if isinstance(refused, NotTakenError) else _purposes.takes
        raise error(f"{PURPOSES_KEY} of {of} is {named!r}: it takes {takes}") from None
    return found


def describe_decision(verdict: Verdict, judgement: Judgement | None) -> str:
    """Return a verdict in words, with the usage preferences if they decided."""
    if judgement is None or verdict.reason is not Reason.USAGE:
        return describe(verdict)
    return describe_usage(verdict, judgement.results)


def store_judgement(request: Request, judgement: Judgement) -> None:
    """Write a judgement to the meta of ``request``, which already has the verdict."""
    request.meta[META_KEY][USAGE_KEY] = as_dict(judgement.usage, judgement.results)


def as_dict(usage: Usage, results: Mapping[str, Value]) -> dict[str, Any]:
    """Return preferences, and the results by purpose, as plain values."""
    return {"results": dict(results), **usage.as_dict()}


def replace_judgement(hop: Request, request: Request) -> None:
    """Replace the judgement in the meta of ``request`` by that of its redirect ``hop``, or none."""
    values = stored_judgement(hop)
    request.meta.get(META_KEY, {}).pop(USAGE_KEY, None)
    if values is not None:
        request.meta.setdefault(META_KEY, {})[USAGE_KEY] = values


def stored_judgement(request: Request | None) -> dict[str, Any] | None:
    """Return the judgement that ``store_judgement`` has written, as plain values; None if none."""
    values = None if request is None else request.meta.get(META_KEY)
    return values.get(USAGE_KEY) if isinstance(values, dict) else None
