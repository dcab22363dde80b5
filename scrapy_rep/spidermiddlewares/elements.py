"""Reads the meta elements of a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final
from weakref import WeakSet

from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse, Response

from scrapy_rep import stats
from scrapy_rep.protocol.limits import MAX_META_ELEMENTS
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_url

logger: Final = LimitedLogger(__name__)

_HAS_SOME: Final = re.compile(r"<meta\b", re.IGNORECASE).search
_logged: Final[WeakSet[Response]] = WeakSet()
"""Pages for which the warning was logged. Two middlewares read each page, but log it once."""


def meta_elements(response: Response, crawler: Crawler) -> Sequence[tuple[str, str]] | None:
    """Return the names and contents of the meta elements of a page.

    At most MAX_META_ELEMENTS + 1 elements are returned, so that the caller notices if there are too
    many. If they can't be read, a warning is logged, and None is returned.
    """
    # The encoding that a site declares may be any codec of Python, and codecs raise any errors.
    try:
        return list(islice(_names_and_contents(response), MAX_META_ELEMENTS + 1))
    except Exception as error:  # noqa: BLE001 - logged
        if response not in _logged:
            _logged.add(response)
            stats.count(crawler, stats.TAGS_UNREADABLE)
            logger.warning(
                "The meta elements of %s can't be read (%s: %a): the page is treated as if they "
                "forbade everything",
                printable_url(response),
                type(error).__name__,
                str(error),
                extra={"spider": crawler.spider},
            )
        return None


def _names_and_contents(response: Response) -> Iterator[tuple[str, str]]:
    if isinstance(response, HtmlResponse) and _HAS_SOME(response.text):
        # Selectors are not used: they copy all attributes of an element for each attribute read.
        for element in response.selector.root.iter("meta"):
            yield element.get("name", ""), element.get("content", "")
