"""The base of the spider middlewares: reads meta elements of pages, and drops or marks items."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final
from weakref import WeakSet

from itemadapter import ItemAdapter
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from scrapy_rep import stats
from scrapy_rep.protocol.limits import MAX_META_ELEMENTS
from scrapy_rep.settings import Options
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import without_credentials

_HAS_SOME: Final = re.compile(r"<meta\b", re.IGNORECASE).search
_logged: Final[WeakSet[Response]] = WeakSet()
"""Pages for which the warning was logged. Two middlewares read each page, but log it once."""


class PageMiddleware(BaseSpiderMiddleware):
    """Reads meta elements, and drops or marks items. Raises NotConfigured."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if not crawler.settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        self._options = Options.of(crawler)
        self._logger = LimitedLogger(__name__, crawler)

    def _meta_elements(self, response: Response) -> Sequence[tuple[str, str]] | None:
        """Return names and contents, one more than MAX_META_ELEMENTS at most; None: unreadable."""
        # The encoding that a site declares may be any codec of Python, and codecs raise any errors.
        try:
            return list(islice(_names_and_contents(response), MAX_META_ELEMENTS + 1))
        except Exception as error:  # noqa: BLE001 - logged
            if response not in _logged:
                _logged.add(response)
                stats.count(self.crawler, stats.TAGS_UNREADABLE)
                self._logger.warning(
                    "The meta elements of %s can't be read (%s: %a): the page is treated as if "
                    "they forbade everything",
                    quoted_url(response),
                    type(error).__name__,
                    str(error),
                )
            return None

    def _drop_item(self, item: Any, response: Response | None, why: str) -> Any:
        """Log that ``item`` is dropped; return None, or ``item`` in a dry run."""
        what = "Dry run, would drop" if self._options.dry_run else "Dropped"
        self._logger.info("%s item (%s): %s", what, why, quoted_url(response))
        return item if self._options.dry_run else None

    def _mark_item(self, item: Any, response: Response | None, field: str, value: Any) -> Any:
        """Return ``item``, with ``field`` set if it has such a field. Errors are logged."""
        # An error here would end the callback, and lose all that it has not yet yielded.
        try:
            if ItemAdapter.is_item(item):
                adapter = ItemAdapter(item)
                if field in adapter.field_names():
                    adapter[field] = value
        except Exception:
            where = quoted_url(response)
            self._logger.exception("Error while setting %s of an item of %s", field, where)
        return item


def _names_and_contents(response: Response) -> Iterator[tuple[str, str]]:
    """Yield what an HTML page has; nothing for others. Codecs may raise any error."""
    if isinstance(response, HtmlResponse) and _HAS_SOME(response.text):
        # Selectors are not used: they copy all attributes of an element for each attribute read.
        for element in response.selector.root.iter("meta"):
            yield element.get("name", ""), element.get("content", "")


def quoted_url(response: Response | None) -> str:
    """Return the URL of a page in quotes, without credentials, for a log line; else ``"None"``."""
    return ascii(None if response is None else without_credentials(response.url))
