"""Soft 404: whether the page of a server error says that there is no such page (SPEC F-9)."""

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
"""Bytes of the page that are looked at."""
_MAX_VISIBLE: Final = 512
"""Characters of visible text in which the page has to say so: its title and its headline."""


def says_not_found(body: bytes) -> bool:
    """Return whether the page's first visible words say that there is no such page.

    Only its first words count: a maintenance page may well mention elsewhere what it does with
    pages that are not found, and to take that for a 404 would open a site that is down.
    """
    text = _visible(body[:_MAX_READ].decode("utf-8", "replace"))
    words = " ".join(unescape(text).lower().split())[:_MAX_VISIBLE]
    return any(phrase in words for phrase in _PHRASES)


def _visible(html: str) -> str:
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
