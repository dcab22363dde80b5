"""What the log says of the crawl at its start, and how a request stands in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol import limits
from scrapy_rep.protocol.agents import is_product_token
from scrapy_rep.settings import shown_store, unknown_settings

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from scrapy_rep.settings import Options

logger = logging.getLogger(__name__)

_SHOWN_ANYWAY: Final = {"ROBOTSTXT_USER_AGENT", "REP_STORE", "REP_OVERRIDES"}


def show(request: Request) -> str:
    """Return a request for a log line, without the credentials that its URL may hold."""
    scheme, slashes, rest = request.url.partition("://")
    authority = rest[: min((i for i in map(rest.find, "/?#") if i >= 0), default=len(rest))]
    url = f"{scheme}{slashes}{rest[authority.rfind('@') + 1 :]}"
    return f"<{request.method} {ascii(url)[1:-1]}>"


def log_start(crawler: Crawler, options: Options, tokens: tuple[str, ...]) -> None:
    """Tell how robots.txt is obeyed, in one line, and warn of what can't be meant."""
    extra = {"spider": crawler.spider}
    changed = {k: v for k, v in options.changed().items() if k not in _SHOWN_ANYWAY}
    logger.info(
        "Obeying robots.txt as %s, records in %s%s",
        ", ".join(map(ascii, tokens)) or "a crawler without a product token ('*' alone)",
        shown_store(options.store),
        "".join(f", {name}={value!r}" for name, value in changed.items()),
        extra=extra,
    )
    if not tokens:
        logger.warning(
            "The User-Agent names no crawler, and so only the '*' groups of robots.txt are "
            "obeyed: set ROBOTSTXT_USER_AGENT or a USER_AGENT with a name of your own",
            extra=extra,
        )
    for token in tokens:
        if not is_product_token(token):
            logger.warning(
                "No robots.txt can name %a by RFC 9309 §2.2.1, which takes letters, '_' and "
                "'-' alone: set ROBOTSTXT_USER_AGENT",
                token,
                extra=extra,
            )
    if options.max_size < limits.MAX_BODY_BYTES:
        logger.warning(
            "REP_MAX_SIZE is %d: RFC 9309 §2.5 asks for at least 500 KiB (%d)",
            options.max_size,
            limits.MAX_BODY_BYTES,
            extra=extra,
        )
    for name in unknown_settings(crawler.settings):
        logger.warning("%s is no setting of this version of scrapy-rep", name, extra=extra)
