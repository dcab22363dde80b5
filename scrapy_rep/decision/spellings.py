"""The other forms in which a URL may be sent, or read: each of them is judged, too.

A verdict speaks of the URL of a request. Some download handlers and most servers don't leave it as
it is, and a disallowed page must not be had by another spelling of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy.utils.misc import load_object

from scrapy_rep.protocol.origin import target_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

_EDGES: Final = "".join(map(chr, range(0x21)))
_REMOVED: Final = str.maketrans("", "", "\t\r\n")


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
        self._rewritten = _rewriter(settings)

    def of(self, url: str, target: str, *, verbatim: bool = False) -> set[str]:
        """Return the other targets that ``target``, that of ``url``, may be sent or read as.

        ``verbatim`` is what ``meta["verbatim_url"]`` says.
        """
        parsed = as_parsed(url)
        targets = {target}
        if parsed is not url:
            targets.add(target_of(parsed))
        if self._rewritten is not None and not verbatim:
            rewritten = self._rewritten(url)
            if rewritten != url:
                targets.add(target_of(rewritten))
        targets |= {without_dots(spelling) for spelling in targets if "/." in spelling}
        return targets - {target}


def _rewriter(settings: BaseSettings) -> Callable[[str], str] | None:
    """Return what the crawl's download handler makes of an http URL; None where it changes nothing.

    Scrapy's handler for aiohttp, the default without a reactor, lets yarl undo escapes that need
    not be: ``/a%3Db`` is sent as ``/a=b``.
    """
    path = settings.getwithbase("DOWNLOAD_HANDLERS").get("http")
    if path is None or not load_object(path).__module__.endswith("._aiohttp"):
        return None
    from yarl import URL  # noqa: PLC0415 - there where aiohttp is

    return lambda url: str(URL(url))
