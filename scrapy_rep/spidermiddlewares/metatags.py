"""The spider middleware that obeys robots meta tags and X-Robots-Tag."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

from scrapy_rep import stats
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.drops import Drops
from scrapy_rep.protocol.meta_tags import TOO_MANY, UNREADABLE, Tags, of_page
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.spidermiddlewares.base import PageMiddleware, quoted_url
from scrapy_rep.utils.log import LimitedLogger

TAGS_KEY: Final = "robots_tags"
"""Key of ``Response.meta`` with the robots tags of the page: ``noindex`` and ``nofollow``."""
ITEM_FIELD: Final = "robots_noindex"
"""Field of items that is set to True if their page has ``noindex``."""
MAX_LINKS: Final = 20_000
"""Maximum number of different links that are read."""
MAX_LINKS_TEXT: Final = 2**20
"""Maximum number of their characters. A query of a megabyte takes about a second to be resolved."""
_links_of_pages: Final[WeakKeyDictionary[Response, frozenset[str] | None]] = WeakKeyDictionary()
_NOFOLLOW: Final = Verdict(allowed=False, reason=Reason.NOFOLLOW)


class RobotsTagsMiddleware(PageMiddleware):
    """Drops links of pages with ``nofollow``; drops or marks items of pages with ``noindex``.

    Raises NotConfigured if REP_META_TAGS or ROBOTSTXT_OBEY is false.
    """

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        if self._options.meta_tags is False:
            raise NotConfigured
        self._tokens = ProductTokens.of(crawler)

    def process_spider_input(self, response: Response) -> None:
        """Write the tags of the page to the meta of its request; if none apply, remove others."""
        request = response.request
        if request is None:
            return
        obeys = not request.meta.get("dont_obey_robotstxt")
        if obeys and (tags := self._tags(response, self._tokens.of_request(request))):
            request.meta[TAGS_KEY] = {"noindex": tags.noindex, "nofollow": tags.nofollow}
        else:
            # The callback of another page may have copied the meta of that page, with the tags.
            request.meta.pop(TAGS_KEY, None)

    def get_processed_request(self, request: Request, response: Response | None) -> Request | None:
        """Return None, which drops ``request``, if it follows a link of a page with ``nofollow``.

        All other requests of the callback are kept: forms, URLs that it makes, the page itself. In
        a dry run links are kept, too, and only counted and logged.
        """
        if not _has_directive(response, "nofollow") or response is None:
            return request
        is_same_page = request.url.partition("#")[0] == response.url.partition("#")[0]
        obeys = not (is_same_page or request.meta.get("dont_obey_robotstxt"))
        if not (obeys and _follows_link(request, response)):
            return request
        stats.count(self.crawler, stats.TAGS_NOFOLLOW)
        if (drops := Drops.of(self.crawler)) is not None:
            drops.report(request, _NOFOLLOW, response.url)
        return request if self._options.dry_run else None

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        """Drop or mark ``item`` if its page has ``noindex``; a dry run drops no items."""
        if not _has_directive(response, "noindex"):
            return item
        stats.count(self.crawler, stats.TAGS_NOINDEX)
        if self._options.meta_tags == "drop":
            return self._drop_item(item, response, "noindex")
        return self._mark_item(item, response, ITEM_FIELD, True)

    def _tags(self, response: Response, tokens: tuple[str, ...]) -> Tags:
        """Return the tags of a page. If they can't be read, or are too many, both apply."""
        elements = self._meta_elements(response)
        if elements is None:
            return UNREADABLE
        headers = (each.decode("latin-1") for each in response.headers.getlist(b"X-Robots-Tag"))
        tags = of_page(headers, elements, tokens)
        if tags is TOO_MANY:
            stats.count(self.crawler, stats.TAGS_TOO_MANY)
            LimitedLogger(__name__, self.crawler).debug(
                "Too many robots tags, the page is treated as none: %s", quoted_url(response)
            )
        return tags


def _has_directive(response: Response | None, word: str) -> bool:
    if response is None or response.request is None:
        return False
    return bool(response.request.meta.get(TAGS_KEY, {}).get(word))


def _follows_link(request: Request, response: Response) -> bool:
    """Return whether ``request`` is for a link of the HTML page ``response``.

    True for any request by GET or HEAD if the links can't be read, or are more than the limits.
    """
    if not isinstance(response, HtmlResponse) or request.method not in {"GET", "HEAD"}:
        return False
    if response not in _links_of_pages:
        _links_of_pages[response] = _read_links(response)
    links = _links_of_pages[response]
    return links is None or canonicalize_url(request.url) in links


def _read_links(response: HtmlResponse) -> frozenset[str] | None:
    """Return the links in the form in which Scrapy's duplicates filter compares URLs; or None."""
    # The encoding that a site declares may be any codec of Python, and codecs raise any errors.
    try:
        base = get_base_url(response)
        elements = response.selector.root.iter("a", "area", "link")
        hrefs = {href for element in elements if (href := element.get("href")) is not None}
    except Exception:  # noqa: BLE001 - PageMiddleware logs it
        return None
    if len(hrefs) > MAX_LINKS or sum(map(len, hrefs)) > MAX_LINKS_TEXT:
        return None
    return frozenset(link for href in hrefs for link in _resolve(href, base, response.encoding))


def _resolve(href: str, base: str, page_encoding: str) -> Iterator[str]:
    # Link extractors write a query in the encoding of the page, as browsers do; a Request that the
    # callback makes has it in UTF-8.
    with suppress(ValueError):  # nothing can be requested from some links
        url = urljoin(base, strip_html5_whitespace(href))
        yield canonicalize_url(url)
        if not href.isascii():
            yield canonicalize_url(url, encoding=page_encoding)
