"""The links of an HTML page: what ``nofollow`` is about."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import urljoin
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.http import HtmlResponse, Response
from scrapy.utils.response import get_base_url
from w3lib.html import strip_html5_whitespace
from w3lib.url import canonicalize_url

MAX_LINKS: Final = 20_000
"""Maximum number of different links that are read."""
MAX_LINKS_TEXT: Final = 2**20
"""Maximum number of their characters. A query of a megabyte takes about a second to be resolved."""
_links_of_pages: Final[WeakKeyDictionary[Response, frozenset[str] | None]] = WeakKeyDictionary()


def follows_link(request: Request, response: Response) -> bool:
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
