"""The other spellings of a URL: the forms in which handlers may send it, or servers may read it.

A verdict is about the URL of a request, but download handlers and servers change some URLs. A
disallowed page must not be fetched by another spelling of its URL, so each spelling is checked: if
one of them is disallowed, the URL is disallowed.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from scrapy.settings import BaseSettings

from scrapy_rep.decision.sent_urls import handlers_of
from scrapy_rep.protocol.canonical import canonical_target
from scrapy_rep.protocol.origin import ROBOTSTXT, origin_of, split_url, target_of
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.rules import RuleSet
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.requests import stripped_url

VerdictOn = Callable[[str, Tokens], Verdict | None]

NO_ORIGIN: Final = Verdict(allowed=False, reason=Reason.NO_ORIGIN)
_TOO_COSTLY: Final = Verdict(allowed=False, reason=Reason.TOO_COSTLY)
_MAX_SPELLINGS: Final = 32
"""Maximum number of other spellings that are checked. Real URLs have five at most."""
_BY_RULES: Final = (Reason.RULE, Reason.NO_RULE)

_BLANK: Final = re.compile(r"\s", re.ASCII)
_RESERVED: Final = "!$&'()*+,/:;=?@[]"
_BROKEN: Final = re.compile("%(?![0-9A-Fa-f]{2})").search
_SLASHES: Final = re.compile("//+").sub
_PARAMS: Final = re.compile(";[^/]*").sub
_EMPTY: Final = re.compile(r";?\??\Z").sub


def without_dot_segments(target: str) -> str:
    """Return a canonical target without the segments ``.`` and ``..`` (RFC 3986 §5.2.4)."""
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
    """Finds the verdict on all spellings of URLs, for the download handlers in the settings."""

    def __init__(self, settings: BaseSettings) -> None:
        self._handlers = handlers_of(settings)

    def other_spellings(self, url: str, target: str, *, verbatim: bool = False) -> set[str]:
        """Return the other spellings of ``target``, the target of ``url``.

        ``verbatim`` is the value of ``meta["verbatim_url"]``. If the handler isn't one of Scrapy's,
        changes by browsers and services are included. Raises ValueError if ``url`` has no valid
        origin, or if the request may be sent to another origin.
        """
        parsed = stripped_url(url)
        origin = origin_of(parsed)
        targets = {target}
        if parsed is not url:
            targets.add(target_of(parsed))
        handler = self._handlers.get(origin.scheme)
        if handler is not None:
            sent = set(handler.sent(url, verbatim=verbatim))
            if _BLANK.search(url):
                # A server may end the target at a blank that is sent as it is (RFC 9112 §3).
                sent |= {_BLANK.split(each, 1)[0] for each in sent}
            for each in sent - {url}:
                other, spelling = split_url(each)
                if other != origin:
                    raise ValueError(f"may be sent to {other}")
                targets.add(spelling)
            if not handler.is_known:
                targets.add(target_of(_with_escapes_escaped(url)))
                for change in _CHANGES:
                    targets |= {change(spelling) for spelling in targets}
        targets |= {without_dot_segments(spelling) for spelling in targets if "/." in spelling}
        return targets - {target}

    def strictest_verdict(
        self,
        url: str,
        target: str,
        tokens: Tokens,
        verdict_on: VerdictOn,
        *,
        verbatim: bool = False,
    ) -> tuple[str, Verdict | None]:
        """Return a spelling of ``target`` that is disallowed, else ``target``; and the verdict.

        The verdict is None if ``verdict_on`` returns None for a spelling: a lookup is needed. A URL
        without a clear origin is disallowed. For ``/robots.txt`` no other spelling is checked.
        """
        verdict = verdict_on(target, tokens)
        if verdict is None or not verdict.allowed or target == ROBOTSTXT:
            return target, verdict
        if verdict.reason not in _BY_RULES and url.isascii():
            return target, verdict  # without rules, the spelling doesn't matter
        try:
            spellings = self.other_spellings(url, target, verbatim=verbatim)
        except ValueError:
            return target, NO_ORIGIN
        if len(spellings) > _MAX_SPELLINGS:
            return target, _TOO_COSTLY
        for spelling in spellings:
            other = verdict_on(spelling, tokens)
            if other is None or not other.allowed:
                return spelling, other
        return target, verdict


# Changes of URLs by other handlers than Scrapy's: those for browsers (Playwright) and for services
# that send requests for the crawler.


def _with_escapes_escaped(url: str) -> str:
    # Programs that use libcurl escape each % if one of them begins no valid escape. This changes
    # the URL, not its target: in the canonical form of a target, some escapes are undone.
    return url.replace("%", "%25") if _BROKEN(url) else url


def _with_escapes_undone(target: str) -> str:
    return canonical_target(quote(unquote_to_bytes(target), safe=_RESERVED))


def _without_backslashes(target: str) -> str:
    return target.replace("%5C", "/")  # a backslash


def _with_one_slash(target: str) -> str:
    path, question, query = target.partition("?")
    return _SLASHES("/", path) + question + query


def _without_params(target: str) -> str:
    path, question, query = target.partition("?")
    return _PARAMS("", path) + question + query


def _without_empty_parts(target: str) -> str:
    return _EMPTY("", target)


# Changes of canonical targets.
_CHANGES: Final = (
    _with_escapes_undone,
    _without_backslashes,
    _without_params,
    _with_one_slash,
    _without_empty_parts,
)


def verdict_of_rules(rules: RuleSet, url: str, spellings: Spellings) -> Verdict:
    """Return the verdict of ``rules`` on all spellings of ``url``."""
    target = target_of(url)

    def verdict_on(target: str, _: Tokens) -> Verdict:
        return rules.verdict_for(target)

    verdict = spellings.strictest_verdict(url, target, (), verdict_on)[1]
    return verdict or rules.verdict_for(target)
