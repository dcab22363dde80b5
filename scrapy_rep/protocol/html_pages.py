"""HTML in place of robots.txt: a text that a browser has wrapped, and pages that mean 'not found'.

Browsers, and APIs that render pages, return robots.txt as the only ``pre`` element of a page. As
robots.txt, this HTML would be a part of the first line, which would be lost, and with it the first
group.
"""

import re
from html import unescape
from typing import Final

_MAX_HEAD: Final = 4_096
"""Maximum number of bytes before the text; browsers write less than 300."""
_START: Final = rb"(?:\xef\xbb\xbf)?\s*"
_PAGE: Final = re.compile(_START + rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_HEAD: Final = re.compile(
    _START + rb"(?:<!doctype[^>]*>\s*)?<html(?:\s[^>]*)?>\s*"
    rb"(?:<head>\s*(?:<(?:meta|link)\s[^>]*>\s*)*</head>\s*)?"
    rb"<body(?:\s[^>]*)?>\s*<pre(?:\s[^>]*)?>",
    re.IGNORECASE,
)
# Chromium writes the empty element after text that it can format, such as JSON.
_TAIL: Final = re.compile(
    rb'</pre>\s*(?:<div class="json-formatter-container"></div>\s*)?</body>\s*</html>\s*',
    re.IGNORECASE,
)
# The escapes that browsers write (HTML, 'Serializing HTML fragments'). Any other escape is part of
# the text itself, and is not undone.
_REFERENCES: Final = {
    b"&amp;": b"&",
    b"&lt;": b"<",
    b"&gt;": b">",
    b"&nbsp;": b"\xc2\xa0",
    b"&quot;": b'"',
    b"&#39;": b"'",
}
_REFERENCE: Final = re.compile(b"|".join(_REFERENCES))


def is_html(text: bytes) -> bool:
    """Return whether a text begins with ``<!doctype html`` or ``<html``, after blanks or none."""
    return _PAGE.match(text) is not None


def unwrap(text: bytes, *, truncated: bool) -> bytes:
    """Return the plain text that a browser has wrapped in HTML; else ``text``, the same object.

    If ``truncated`` is true, the text was cut, so that all of the end of the HTML may be missing.
    """
    head = _HEAD.match(text, 0, _MAX_HEAD)
    if head is None:
        return text
    # In wrapped text, a '<' of the file is escaped, so the next '<' begins the end of the HTML.
    end = text.find(b"<", head.end())
    if end < 0:
        if not truncated:
            return text
        end = len(text)
    elif _TAIL.fullmatch(text, end) is None:
        return text
    return _REFERENCE.sub(lambda found: _REFERENCES[found.group()], text[head.end() : end])


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

    A maintenance page may contain it further down: the site is down then, and not open to all.
    """
    text = _hide(" ", body[:_MAX_READ].decode("utf-8", "replace"))
    words = " ".join(unescape(text).lower().split())[:_MAX_VISIBLE]
    return any(phrase in words for phrase in _PHRASES)
