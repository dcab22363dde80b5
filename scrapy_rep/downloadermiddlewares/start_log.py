"""Checks of the settings, and log lines, when a crawl starts."""

from __future__ import annotations

from operator import gt, lt
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project
from scrapy.utils.python import global_object_name

from scrapy_rep.decision.decider import Decider
from scrapy_rep.downloadermiddlewares.robotstxt_fetch import RobotsTxtFetchMiddleware
from scrapy_rep.downloadermiddlewares.robotstxt_response import RobotsTxtResponseMiddleware
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.overrides import Overrides
from scrapy_rep.protocol import limits
from scrapy_rep.protocol.product_tokens import is_product_token
from scrapy_rep.settings import Options, unknown_settings
from scrapy_rep.stores import registry
from scrapy_rep.utils.clock import Clock
from scrapy_rep.utils.log import LimitedLogger

logger: Final = LimitedLogger(__name__)

_SHOWN_ANYWAY: Final = {"ROBOTSTXT_USER_AGENT", "REP_STORE", "REP_OVERRIDES"}
_SCRAPYS_TOKENS: Final = ("Scrapy",)
"""The product tokens of Scrapy's default User-Agent."""


def describe_why_not_obeyed(settings: BaseSettings) -> str:
    """Return a message that names the setting because of which robots.txt is not obeyed."""
    priority = settings.getpriority("ROBOTSTXT_OBEY")
    where = next((name for name, n in SETTINGS_PRIORITIES.items() if n == priority), priority)
    return (
        "robots.txt is not obeyed, because ROBOTSTXT_OBEY is "
        f"{settings['ROBOTSTXT_OBEY']!r} in the {where} settings"
    )


def read_overrides(options: Options, clock: Clock) -> Overrides:
    """Return the overrides of REP_OVERRIDES.

    Raises SettingsError if a file that they name can't be read.
    """
    try:
        return Overrides(options.overrides, clock.time)
    except OSError as error:
        raise SettingsError(f"REP_OVERRIDES names a file that can't be read: {error}") from None


def log_start(crawler: Crawler, options: Options, decider: Decider) -> None:
    """Log how robots.txt is obeyed, in one line, and warn of settings that look like mistakes."""
    tokens = decider.tokens.default()
    extra = {"spider": crawler.spider}
    changed = {k: v for k, v in options.non_default().items() if k not in _SHOWN_ANYWAY}
    logger.info(
        "%s robots.txt as %s, records in %s%s",
        "Reading" if options.dry_run else "Obeying",
        ", ".join(map(ascii, tokens)) or "'*' (no product token)",
        _place_of_store(options.store),
        "".join(f", {name}={value!r}" for name, value in changed.items()),
        extra=extra,
    )
    if options.dry_run:
        logger.warning(
            "Dry run: all requests are sent. No Crawl-delay is kept, and no pause after status 429 "
            "or 503",
            extra=extra,
        )
    _log_tokens(options, tokens, extra)
    if crawler.settings.get("REP_USAGE_ACTION") and not decider.usage.purposes:
        logger.warning(
            "REP_USAGE_ACTION is %a, but no purposes are declared: it affects only requests with "
            "purposes in their meta. Set REP_PURPOSES",
            options.usage_action,
            extra=extra,
        )
    if options.max_size < limits.MAX_BODY_BYTES:
        logger.warning(
            "REP_MAX_SIZE is %d: RFC 9309 §2.5 asks for at least 500 KiB (%d)",
            options.max_size,
            limits.MAX_BODY_BYTES,
            extra=extra,
        )
    second = crawler.get_downloader_middleware(BuiltInMiddleware)
    if second is not None:
        logger.warning(
            "DOWNLOADER_MIDDLEWARES has another middleware for robots.txt, which fetches each "
            "file again and drops requests, too: %s. Remove it, or base it on "
            "scrapy_rep.RobotsTxtMiddleware",
            global_object_name(type(second)),
            extra=extra,
        )
    for message in unknown_settings(crawler.settings):
        logger.warning(message, extra=extra)


def _place_of_store(uri: str) -> str:
    name, path = registry.display_name(uri), registry.path_of(uri)
    is_here = path is not None and not inside_project() and str(path) not in uri
    return f"{name} (outside of a project, in the current directory)" if is_here else name


def _log_tokens(options: Options, tokens: tuple[str, ...], extra: dict[str, Any]) -> None:
    """Log if there are no product tokens, invalid ones, or those of Scrapy's default User-Agent."""
    if not tokens:
        logger.warning(
            "The User-Agent contains no product token, so only the '*' groups of robots.txt "
            "apply. Set ROBOTSTXT_USER_AGENT or USER_AGENT",
            extra=extra,
        )
    if options.tokens is None and tokens == _SCRAPYS_TOKENS:
        logger.info(
            "The product token is 'Scrapy', the name in Scrapy's default User-Agent. To name "
            "your crawler, set USER_AGENT, for example to 'mybot/1.0 (+https://mybot.example)'",
            extra=extra,
        )
    for token in tokens:
        if not is_product_token(token):
            logger.warning(
                "%a is not a valid product token: RFC 9309 §2.2.1 allows only letters, '_' and "
                "'-'. Set ROBOTSTXT_USER_AGENT",
                token,
                extra=extra,
            )


def log_cannot_defer(crawler: Crawler) -> None:
    """Log that requests of unreachable origins are dropped, as the scheduler can't defer them."""
    logger.info(
        "Requests of origins whose robots.txt is unreachable are dropped at once, because the "
        "scheduler does not defer them. To defer them, set SCHEDULER_PRIORITY_QUEUE to "
        "'scrapy_rep.RobotsAwarePriorityQueue' or, with scrapy-redis, SCHEDULER_QUEUE_CLASS to "
        "'scrapy_rep.RobotsAwareRedisQueue'",
        extra={"spider": crawler.spider},
    )


def log_no_wire(crawler: Crawler) -> None:
    """Log that requests are checked before their download slot, not when they are sent."""
    logger.warning(
        "The downloader has no download_request_async: the delays and pauses of sites are checked "
        "in the last downloader middleware, before requests wait in their download slots",
        extra={"spider": crawler.spider},
    )


def check_middleware_orders(crawler: Crawler) -> None:
    """Check the orders of the first and the last downloader middleware.

    Raises SettingsError if RobotsTxtFetchMiddleware is missing, or another middleware has at least
    its order, or if another middleware has at most the order of RobotsTxtResponseMiddleware.
    """
    orders = {
        load_object(path): order
        for path, order in crawler.settings.getwithbase("DOWNLOADER_MIDDLEWARES").items()
        if order is not None
    }
    for cls, where, is_beyond in (
        (RobotsTxtFetchMiddleware, "beyond", gt),
        (RobotsTxtResponseMiddleware, "below", lt),
    ):
        takes = f"scrapy_rep.{cls.__name__} at an order {where} all others"
        ours = [each for each in orders if isinstance(each, type) and issubclass(each, cls)]
        if not ours and cls is RobotsTxtFetchMiddleware:
            raise SettingsError(
                "DOWNLOADER_MIDDLEWARES has scrapy_rep.RobotsTxtMiddleware alone: it takes "
                f"{takes}, too: ADDONS = {{'scrapy_rep.Addon': 500}} sets all"
            )
        for component in orders.keys() - ours if ours else ():
            order = orders[ours[0]]
            if not is_beyond(order, orders[component]):
                raise SettingsError(
                    f"DOWNLOADER_MIDDLEWARES has scrapy_rep.{cls.__name__} at {order}, and "
                    f"{global_object_name(component)} at {orders[component]}: it takes {takes}"
                )
