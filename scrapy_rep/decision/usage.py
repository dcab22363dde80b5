"""Compares the usage preferences of sites with the purposes that a crawl declares."""

from __future__ import annotations

from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.cache.entry import Entry
from scrapy_rep.exceptions import SettingsError, describe, describe_usage
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.usage import PURPOSES, Judgement, judge
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.signals import META_KEY, Announcer, robotstxt_usage
from scrapy_rep.utils.per_crawl import get_or_add_part
from scrapy_rep.utils.setting_readers import several_of
from scrapy_rep.utils.text import printable_request

PURPOSES_KEY: Final = "robotstxt_purposes"
"""Name of the key of ``Request.meta``, and of the attribute of a spider, with purposes that replace
REP_PURPOSES."""
USAGE_KEY: Final = "usage"
"""Key of ``Request.meta["robotstxt"]`` with the judgement, as plain values."""
_purposes: Final = several_of(PURPOSES)
_USAGE: Final = Verdict(allowed=False, reason=Reason.USAGE)


class UsageJudge:
    """Compares usage preferences with declared purposes; only ``report`` counts and sends it."""

    def __init__(self, crawler: Crawler) -> None:
        options = Options.of(crawler)
        self._crawler = crawler
        self._announcer = Announcer(crawler)
        self._drops = options.usage_action == "drop"
        self.drops_items: bool = options.usage_action != "record"
        """Whether the items of refused pages are dropped."""
        self.purposes: tuple[str, ...] = options.purposes
        """The purposes of requests that declare none."""
        named = getattr(crawler.spider, PURPOSES_KEY, None)
        if named is not None:
            self.purposes = _checked_purposes(named, "the spider", SettingsError)

    @classmethod
    def of(cls, crawler: Crawler) -> UsageJudge:
        """Return the instance of a crawl; SettingsError if the spider has unknown purposes."""
        return get_or_add_part(crawler, cls, lambda: cls(crawler))

    def judge(
        self, request: Request, entry: Entry, target: str, tokens: Tokens, verdict: Verdict | None
    ) -> tuple[Verdict | None, Judgement | None]:
        """Return the verdict on a page, disallowed if its use is, and the judgement.

        Without purposes, or if the page may not be fetched anyway, there is no judgement. Raises
        ValueError if the meta of ``request`` has unknown purposes.
        """
        purposes = self.purposes
        if (named := request.meta.get(PURPOSES_KEY)) is not None:
            purposes = _checked_purposes(named, printable_request(request), ValueError)
        if not purposes or verdict is None or not verdict.allowed or verdict == ALLOWED_ROBOTSTXT:
            return verdict, None
        judgement = judge(entry.usage(target, tokens), purposes)
        return _USAGE if judgement.refused and self._drops else verdict, judgement

    def report(self, request: Request, judgement: Judgement) -> None:
        """Count the final judgement of a page in the stats, and send ``robotstxt_usage``."""
        if judgement.refused:
            stats.count(self._crawler, stats.USAGE_DISALLOWED)
        for purpose, result in judgement.results.items():
            stats.count(self._crawler, stats.USAGE_COUNT.format(purpose=purpose, result=result))
        self._announcer.send(robotstxt_usage, request=request, **judgement._asdict())


def _checked_purposes(named: Any, of: object, error: type[ValueError]) -> tuple[str, ...]:
    try:
        return tuple(_purposes.read(named))
    except (ValueError, TypeError):
        raise error(f"{PURPOSES_KEY} of {of} is {named!r}: it takes {_purposes.takes}") from None


def describe_decision(verdict: Verdict, judgement: Judgement | None) -> str:
    """Return a verdict in words, with the usage preferences if they decided."""
    if judgement is None or verdict.reason is not Reason.USAGE:
        return describe(verdict)
    return describe_usage(verdict, judgement.results)


def store_judgement(request: Request, judgement: Judgement) -> None:
    """Write a judgement to the meta of ``request``, which already has the verdict."""
    request.meta[META_KEY][USAGE_KEY] = judgement.as_dict()


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
