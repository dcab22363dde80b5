"""Server errors (5xx) with a page that means 'not found' (SPEC F-9)."""

import re
from html import unescape
from typing import Final

_PHRASES: Final = (
    "page not found",
    "page was not found",
    "page could not be found",
    "page cannot be found",
    "page can't be found",
    "page can’t be found",  # noqa: RUF001 - as error pages spell it
    "page does not exist",
    "page doesn't exist",
    "file not found",
    "404 not found",
    "404 error",
    "error 404",
    "seite nicht gefunden",
    "seite wurde nicht gefunden",
    "page introuvable",
    "page non trouvée",
    "página no encontrada",
    "página não encontrada",
    "pagina non trovata",
    "pagina niet gevonden",
    "страница не найдена",
    "找不到网页",
    "ページが見つかりません",
)
# What a browser doesn't show: tags, comments, and the content of some elements. What isn't closed
# extends to the end, so that no text is read twice.
_hide: Final = re.compile(
    r"<(?:script.*?(?:</script[^>]*>?|\Z)|style.*?(?:</style[^>]*>?|\Z)"
    r"|!(?=--).*?(?:-->|\Z)|[^>]*>?)",
    re.IGNORECASE | re.DOTALL | re.ASCII,
).sub
_MAX_READ: Final = 65_536
"""Number of bytes of the page that are read."""
_MAX_VISIBLE: Final = 512
"""Number of characters of visible text that are searched: about the title and the first heading."""


def is_not_found_page(body: bytes) -> bool:
    """Return whether the first 512 visible characters contain a phrase such as 'page not found'.

    Words further down don't count. A maintenance page may contain such a phrase there. If it
    counted, all pages of a site would be allowed while the site is down.
    """
    text = _hide(" ", body[:_MAX_READ].decode("utf-8", "replace"))
    words = " ".join(unescape(text).lower().split())[:_MAX_VISIBLE]
    return any(phrase in words for phrase in _PHRASES)
