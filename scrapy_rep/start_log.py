"""The log lines about how a crawl obeys robots.txt, when it starts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.utils.project import inside_project
from scrapy.utils.python import global_object_name

from scrapy_rep.decision.decider import Decider
from scrapy_rep.protocol.product_tokens import is_product_token
from scrapy_rep.settings import Options, unknown_settings
from scrapy_rep.stores.uri import display_name, path_of
from scrapy_rep.utils.log import LimitedLogger

_SHOWN_ANYWAY: Final = {"ROBOTSTXT_USER_AGENT", "REP_STORE", "REP_OVERRIDES"}
_PARSERS: Final = (default_settings.ROBOTSTXT_PARSER, "scrapy_rep.RobotParser")
_SCRAPYS_TOKENS: Final = ("Scrapy",)


def describe_why_not_obeyed(settings: BaseSettings) -> str:
    """Return a message with the value of ROBOTSTXT_OBEY, and which settings it is from."""
    priority = settings.getpriority("ROBOTSTXT_OBEY")
    where = next((name for name, n in SETTINGS_PRIORITIES.items() if n == priority), priority)
    return (
        "robots.txt is not obeyed, because ROBOTSTXT_OBEY is "
        f"{settings['ROBOTSTXT_OBEY']!r} in the {where} settings"
    )


def log_start(
    crawler: Crawler, options: Options, decider: Decider, *, lacks_queue: bool, has_wire: bool
) -> None:
    """Log how robots.txt is obeyed, in one line; warn of settings that look like mistakes."""
    tokens = decider.tokens.default()
    store, path = display_name(options.store), path_of(options.store)
    if path is not None and not inside_project() and str(path) not in options.store:
        store += " (outside of a project, in the current directory)"
    changed = {k: v for k, v in options.non_default().items() if k not in _SHOWN_ANYWAY}
    logger = LimitedLogger(__name__, crawler)
    logger.info(
        "%s robots.txt as %s, records in %s%s",
        "Reading" if options.dry_run else "Obeying",
        ", ".join(map(ascii, tokens)) or "'*' (no product token)",
        store,
        "".join(f", {name}={value!r}" for name, value in changed.items()),
    )
    for warning in _warnings(crawler, options, decider, tokens):
        logger.warning(warning)
    if options.tokens is None and tokens == _SCRAPYS_TOKENS:
        logger.info(
            "The product token is 'Scrapy', the name in Scrapy's default User-Agent. To name "
            "your crawler, set USER_AGENT, for example to 'mybot/1.0 (+https://mybot.example)'"
        )
    if lacks_queue:
        logger.info(
            "Requests of origins whose robots.txt is unreachable are dropped at once, because the "
            "scheduler does not defer them: set SCHEDULER_PRIORITY_QUEUE to "
            "'scrapy_rep.RobotsAwarePriorityQueue'"
        )
    if not has_wire:
        logger.error(
            "The downloader has no download_request_async, where requests are checked as they are "
            "sent: no page is fetched. Set DOWNLOADER to that of Scrapy"
        )


def _warnings(
    crawler: Crawler, options: Options, decider: Decider, tokens: tuple[str, ...]
) -> Iterator[str]:
    if options.dry_run:
        yield (
            "Dry run: all requests are sent. No Crawl-delay is kept, and no pause after status 429 "
            "or 503"
        )
    if not tokens:
        yield (
            "The User-Agent contains no product token, so only the '*' groups of robots.txt "
            "apply. Set ROBOTSTXT_USER_AGENT or USER_AGENT"
        )
    for token in tokens:
        if not is_product_token(token):
            yield (
                f"{token!a} is not a valid product token: RFC 9309 §2.2.1 allows only letters, '_' "
                "and '-'. Set ROBOTSTXT_USER_AGENT"
            )
    if crawler.settings.get("REP_USAGE_ACTION") and not decider.usage_judge.purposes:
        yield (
            f"REP_USAGE_ACTION is {options.usage_action!a}, but no purposes are declared: it "
            "affects only requests with purposes in their meta. Set REP_PURPOSES"
        )
    parser = crawler.settings["ROBOTSTXT_PARSER"]
    if parser not in _PARSERS:
        yield (
            f"ROBOTSTXT_PARSER is {parser!r}, and is not used: robots.txt is read by scrapy-rep's "
            "own parser. Remove the setting"
        )
    if (second := crawler.get_downloader_middleware(BuiltInMiddleware)) is not None:
        yield (
            "DOWNLOADER_MIDDLEWARES has another middleware for robots.txt, which fetches each "
            f"file again and drops requests, too: {global_object_name(type(second))}. Remove it, "
            "or base it on scrapy_rep.RobotsTxtMiddleware"
        )
    yield from unknown_settings(crawler.settings)
