"""The other forms in which a URL may be sent, or read: each of them is judged, too.

A verdict speaks of the URL of a request. Download handlers and most servers don't leave it as it
is, and a disallowed page must not be had by another spelling of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote_to_bytes

from scrapy_rep.decision.handlers import handlers_of
from scrapy_rep.protocol.canonical import canonical_target
from scrapy_rep.protocol.origin import origin_of, split_url, target_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_EDGES: Final = "".join(map(chr, range(0x21)))
_REMOVED: Final = str.maketrans("", "", "\t\r\n")
_RESERVED: Final = "!$&'()*+,/:;=?@[]"
_BROKEN: Final = re.compile("%(?![0-9A-Fa-f]{2})").search
_SLASHES: Final = re.compile("//+").sub
_PARAMS: Final = re.compile(";[^/]*").sub
_EMPTY: Final = re.compile(r";?\??\Z").sub


def as_parsed(url: str) -> str:
    """Return a URL as URL parsers read it: no blanks around it, no tabs and line ends within.

    Those of Scrapy's requests have none, but for ``meta["verbatim_url"]``, and are returned as they
    are.
    """
    if url.isprintable() and " " not in {url[:1], url[-1:]}:
        return url
    return url.strip(_EDGES).translate(_REMOVED)


def without_dots(target: str) -> str:
    """Return a canonical target with ``.`` and ``..`` taken out of its path (RFC 3986 §5.2.4)."""
    path, question, query = target.partition("?")
    *folders, name = path.split("/")[1:]
    kept: list[str] = []
    for segment in folders:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if name == "..":
        del kept[-1:]
    if name in {".", ".."}:
        name = ""
    return "/" + "/".join([*kept, name]) + question + query


class Spellings:
    """What else may become of the target of a request, in a crawl with these settings."""

    def __init__(self, settings: BaseSettings) -> None:
        self._handlers = handlers_of(settings)

    def others(self, url: str, target: str, *, verbatim: bool = False) -> set[str]:
        """Return the other targets that ``target``, that of ``url``, may be sent or read as.

        ``verbatim`` is what ``meta["verbatim_url"]`` says. Raises ValueError where the request may
        go to another origin than that of ``url``.
        """
        parsed = as_parsed(url)
        origin = origin_of(parsed)
        targets = {target}
        if parsed is not url:
            targets.add(target_of(parsed))
        handler = self._handlers.get(origin.scheme)
        if handler is not None:
            for sent in handler.sent(url, verbatim=verbatim):
                if sent == url:
                    continue
                other, spelling = split_url(sent)
                if other != origin:
                    raise ValueError(f"may be sent to {other}")
                targets.add(spelling)
            if not handler.is_known:
                for change in _CHANGES:
                    targets |= {change(spelling) for spelling in targets}
        targets |= {without_dots(spelling) for spelling in targets if "/." in spelling}
        return targets - {target}


# What others than Scrapy's own handlers, browsers and services, do to URLs.


def _with_escapes_undone(target: str) -> str:
    return canonical_target(quote(unquote_to_bytes(target), safe=_RESERVED))


def _with_escapes_escaped(target: str) -> str:
    # As libcurl's callers do with a URL that has a broken one.
    return canonical_target(target.replace("%", "%25")) if _BROKEN(target) else target


def _with_slashes(target: str) -> str:
    return target.replace("%5C", "/")  # what a backslash has become


def _with_one_slash(target: str) -> str:
    path, question, query = target.partition("?")
    return _SLASHES("/", path) + question + query


def _without_params(target: str) -> str:
    path, question, query = target.partition("?")
    return _PARAMS("", path) + question + query


def _without_empty_parts(target: str) -> str:
    return _EMPTY("", target)


_CHANGES: Final = (
    _with_escapes_undone,
    _with_escapes_escaped,
    _with_slashes,
    _without_params,
    _with_one_slash,
    _without_empty_parts,
)
