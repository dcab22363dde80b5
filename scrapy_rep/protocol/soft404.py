"""Soft 404: a server error (5xx) with a page that means 'not found' (SPEC F-9)."""

from __future__ import annotations

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
_HIDDEN: Final = (("<script", "</script"), ("<style", "</style"), ("<!--", "-->"))
_MAX_READ: Final = 65_536
"""Number of bytes of the page that are read."""
_MAX_VISIBLE: Final = 512
"""Number of characters of visible text that are searched: about the title and the first heading."""


def is_not_found_page(body: bytes) -> bool:
    """Return whether the first visible words of a page contain a phrase such as 'page not found'.

    Words further down don't count. A maintenance page may contain such a phrase there. If it
    counted, all pages of a site would be allowed while the site is down.
    """
    text = _visible_text(body[:_MAX_READ].decode("utf-8", "replace"))
    words = " ".join(unescape(text).lower().split())[:_MAX_VISIBLE]
    return any(phrase in words for phrase in _PHRASES)


def _visible_text(html: str) -> str:
    lower = html.lower()
    parts = []
    position = 0
    while (tag := html.find("<", position)) >= 0:
        parts.append(html[position:tag])
        close = next((end for start, end in _HIDDEN if lower.startswith(start, tag)), ">")
        end = lower.find(close, tag)
        if end < 0:
            return " ".join(parts)
        position = end + len(close)
        if close.startswith("</"):
            position = html.find(">", position) + 1 or len(html)
    parts.append(html[position:])
    return " ".join(parts)
