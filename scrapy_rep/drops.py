"""Log lines, stats and a summary of dropped requests.

In a dry run no request is dropped. The log and the stats show which requests would be dropped.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Hashable
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep import stats
from scrapy_rep.decision.usage import Judgement, describe_decision, store_judgement
from scrapy_rep.exceptions import message_prefix
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.settings import Options
from scrapy_rep.signals import META_KEY, Announcer, as_meta
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.per_crawl import get_part
from scrapy_rep.utils.text import printable_request, without_credentials

logger: Final = LimitedLogger(__name__)

_REASON_COUNTS: Final = {
    reason: stats.FORBIDDEN_REASON_COUNT.format(reason=reason.value) for reason in Reason
}
_LINKS_IGNORED: Final = "Links ignored (nofollow in robots meta tag or X-Robots-Tag): %d"
_MAX_SHOWN: Final = 10
"""Maximum number of causes in the summary."""
_MAX_CAUSES: Final = 10_000
"""Maximum number of causes that are counted separately."""
_NOFOLLOW: Final = (None, Reason.NOFOLLOW, None)
"""The cause of links that are ignored because of nofollow."""


class Drops:
    """Logs and counts dropped requests, and sends their signal."""

    def __init__(self, crawler: Crawler, announcer: Announcer, options: Options) -> None:
        self._crawler = crawler
        self._is_interactive = options.interactive
        self._dry_run = options.dry_run
        self.announcer = announcer
        """Sends the signals of the crawl."""
        self._by_cause: dict[Hashable, int] = {}
        """Number of drops by cause: a rule, or the state of a robots.txt, such as unreachable."""
        self._in_words: dict[Hashable, str] = {}
        """The text of each cause, for the summary. Long rules are cut, as there may be thousands
        of causes."""
        self._dropped = 0
        self._exempt = 0

    @classmethod
    def of(cls, crawler: Crawler) -> Drops | None:
        """Return the instance of a crawl; None if it doesn't obey robots.txt."""
        return get_part(crawler, cls)

    def log(
        self,
        request: Request,
        verdict: Verdict,
        page: str | None = None,
        usage: Judgement | None = None,
    ) -> None:
        """Log and count ``request``, which is dropped because of ``verdict``, and send its signal.

        The first drop of each cause is logged at INFO, other drops at DEBUG. In a dry run, the
        request is sent, and the log shows that it would be dropped. If nofollow is the
        reason, ``page`` is the URL of the page with nofollow. If usage preferences are the reason,
        ``usage`` is the judgement about them.
        """
        (self._log_would_drop if self._dry_run else self._log_drop)(request, verdict, page, usage)
        self.announcer.send_forbidden(request, verdict, dropped=not self._dry_run)

    def _log_drop(
        self, request: Request, verdict: Verdict, page: str | None, usage: Judgement | None
    ) -> None:
        request.meta[META_KEY] = as_meta(verdict)
        if usage is not None:
            store_judgement(request, usage)
        stats.count(self._crawler, stats.FORBIDDEN)
        stats.count(self._crawler, _REASON_COUNTS[verdict.reason])
        level = logging.INFO if self._is_new_cause(verdict, usage) else logging.DEBUG
        if logger.isEnabledFor(level):
            message, *values = _log_line(request, verdict, page, usage)
            logger.log(level, message, *values, extra={"spider": self._crawler.spider})
        if self._is_interactive:
            # The hint is written to standard error, not logged, so that --nolog doesn't hide it.
            what, setting = (
                ("robots.txt", "ROBOTSTXT_OBEY") if page is None else ("nofollow", "REP_META_TAGS")
            )
            message, *values = _log_line(request, verdict, page, usage)
            sys.stderr.write(f"{message % tuple(values)}. To ignore {what}: -s {setting}=False\n")

    def _log_would_drop(
        self, request: Request, verdict: Verdict, page: str | None, usage: Judgement | None
    ) -> None:
        stats.count(self._crawler, stats.DRY_RUN_FORBIDDEN)
        stats.count(self._crawler, stats.DRY_RUN_REASON_COUNT.format(reason=verdict.reason.value))
        logger.info(
            "Dry run, would drop %s: %s",
            printable_request(request),
            describe_decision(verdict, usage) if page is None else _describe_nofollow(page),
            extra={"spider": self._crawler.spider},
        )

    def count_exempt(self) -> None:
        """Count a request that is sent because its meta has ``dont_obey_robotstxt``."""
        self._exempt += 1
        stats.count(self._crawler, stats.EXEMPT)

    def log_summary(self) -> None:
        """Log the numbers of ignored links, exempt and dropped requests, and the main causes.

        An exempt request is one with ``dont_obey_robotstxt``.
        """
        ignored = self._by_cause.pop(_NOFOLLOW, 0)
        if ignored:
            self._dropped -= ignored
            logger.info(_LINKS_IGNORED, ignored, extra={"spider": self._crawler.spider})
        if self._exempt:
            logger.info(
                "Requests sent regardless of robots.txt (dont_obey_robotstxt): %d",
                self._exempt,
                extra={"spider": self._crawler.spider},
            )
        if not self._dropped:
            return
        most = sorted(self._by_cause.items(), key=lambda item: -item[1])[:_MAX_SHOWN]
        lines = [f"{count:>8}  {self._in_words[cause]}" for cause, count in most]
        others = self._dropped - sum(count for _, count in most)
        if others:
            lines.append(f"{others:>8}  others")
        logger.info(
            "Requests dropped because of robots.txt: %(count)d\n%(lines)s",
            {"count": self._dropped, "lines": "\n".join(lines)},
            extra={"spider": self._crawler.spider},
        )

    def _is_new_cause(self, verdict: Verdict, usage: Judgement | None) -> bool:
        """Count a drop; return whether it is the first one with its cause."""
        self._dropped += 1
        cause = _cause_of(verdict, usage)
        count = self._by_cause.get(cause, 0)
        if not count and len(self._by_cause) >= _MAX_CAUSES:
            return False
        self._by_cause[cause] = count + 1
        if not count or verdict.rule is None:  # the text for a state changes with time
            self._in_words[cause] = describe_decision(verdict, usage)
        return not count


def _log_line(
    request: Request, verdict: Verdict, page: str | None, usage: Judgement | None
) -> tuple[str, ...]:
    """Return the message of a log line, and its values."""
    shown = printable_request(request)
    if page is not None:
        return "Ignoring link (%s): %s", _describe_nofollow(page), shown
    why = describe_decision(verdict, usage)
    if usage is not None:
        return "Forbidden by %s: %s", why, shown
    return f"{message_prefix(verdict)}: %s: %s", shown, why


def _describe_nofollow(page: str) -> str:
    url = ascii(without_credentials(page))[1:-1]
    return f"nofollow in robots meta tag or X-Robots-Tag of {url}"


def _cause_of(verdict: Verdict, usage: Judgement | None) -> tuple[Any, ...]:
    """Return the cause of a drop as a key: equal for drops by one rule, or one state of a file."""
    detail = verdict.line if usage is None else describe_decision(verdict, usage)
    return verdict.robotstxt_url, verdict.reason, detail
