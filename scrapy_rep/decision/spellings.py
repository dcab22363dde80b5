"""The other spellings of a URL: the forms in which it may be sent, or in which servers may read it.

Download handlers, browsers, services that send requests for the crawler, and servers change some
URLs, each in its own way. Each change that one of them makes is made here, whatever handler sends
the request: if one of the spellings is disallowed, the URL is disallowed.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar
from urllib.parse import quote, unquote, unquote_to_bytes

from scrapy_rep.protocol.canonical import canonical_target
from scrapy_rep.protocol.origin import ROBOTSTXT, origin_of, target_of
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.rules import RuleSet
from scrapy_rep.protocol.verdict import Reason, Verdict
from scrapy_rep.utils.requests import stripped_url

V = TypeVar("V", bound=Verdict | None)
_Change = Callable[[str], str]

NO_ORIGIN: Final = Verdict(allowed=False, reason=Reason.NO_ORIGIN)
_TOO_COSTLY: Final = Verdict(allowed=False, reason=Reason.TOO_COSTLY)
_MAX_SPELLINGS: Final = 32
"""Maximum number of other spellings that are checked. Real URLs have five at most."""
_BY_RULES: Final = (Reason.RULE, Reason.NO_RULE)

_BEHIND_SERVER: Final = re.compile("(?<=[^:/])[/?#].*", re.DOTALL)
_LINE_BREAKS: Final = re.compile(r"[\t\r\n]")
_BLANK: Final = re.compile(r"\s", re.ASCII)
_BROKEN: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_RESERVED: Final = "!$&'()*+,/:;=@[]"
"""The reserved characters of RFC 3986 §2.2, without ``?`` and ``#``, which end a path."""
_UNDONE_IN_PATHS: Final = re.compile("%(?:2[146789AC]|3[ABD]|40)").sub
_UNDONE_IN_QUERIES: Final = re.compile("%2[14789AC]").sub
"""The escapes that aiohttp undoes."""
_MAY_CHANGE: Final = re.compile(r"%(?:2[146789ABCF]|3[ABDF]|40|5[BCD])|/\.|//|;|\?\Z").search
"""Finds a text without which none of _CHANGES changes a target."""
_LAST_PARAMS: Final = re.compile(r";[^/]*\Z").sub


def without_dot_segments(path: str) -> str:
    """Return a canonical path without the segments ``.`` and ``..`` (RFC 3986 §5.2.4)."""
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join([*kept, ""] if segments[-1] in {".", ".."} else kept)


def other_spellings(url: str, target: str) -> set[str]:
    """Return the other spellings of ``target``, the target of ``url``; not all if they are many.

    Raises ValueError if ``url`` has no valid origin, or if programs may read another one in it.
    """
    parsed = stripped_url(url)
    origin = origin_of(parsed)
    if not (url.isascii() or _BEHIND_SERVER.sub("", parsed).isascii()):
        raise ValueError("some host names are other ones in other versions of IDNA")
    forms = {url, parsed}
    if _BLANK.search(url):
        forms.add(_LINE_BREAKS.sub("", url))
        # A server may end the target at a blank that is sent as it is (RFC 9112 §3).
        forms |= {_BLANK.split(form, 1)[0] for form in forms}
    # Programs that use libcurl escape each % if one of them begins no valid escape, others that %.
    for form in filter(_BROKEN.search, tuple(forms)):
        forms |= {form.replace("%", "%25"), _BROKEN.sub("%25", form)}
    targets = {target, *map(target_of, forms - {url})}
    if origin.scheme == "ftp":
        targets |= set(map(_as_in_ftp, targets))
    if not any(map(_MAY_CHANGE, targets)):
        return targets - {target}
    for text, change in _CHANGES:
        targets |= {change(each) for each in targets if text in each}
        if len(targets) > _MAX_SPELLINGS + 1:
            break
    return targets - {target}


def strictest_verdict(
    url: str, target: str, tokens: Tokens, verdict_on: Callable[[str, Tokens], V]
) -> tuple[str, V | Verdict]:
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
        spellings = other_spellings(url, target)
    except ValueError:
        return target, NO_ORIGIN
    if len(spellings) > _MAX_SPELLINGS:
        return target, _TOO_COSTLY
    for spelling in spellings:
        other = verdict_on(spelling, tokens)
        if other is None or not other.allowed:
            return spelling, other
    return target, verdict


def verdict_of_rules(rules: RuleSet, url: str) -> Verdict:
    """Return the verdict of ``rules`` on all spellings of ``url``."""
    return strictest_verdict(url, target_of(url), (), lambda each, _: rules.verdict_for(each))[1]


# Changes of canonical targets.


def _in_path(change: _Change) -> _Change:
    def change_path(target: str) -> str:
        path, question, query = target.partition("?")
        return change(path) + question + query

    return change_path


def _as_in_ftp(target: str) -> str:
    """FTP has paths only, which Scrapy's handler sends in Latin-1."""
    path = unquote(_LAST_PARAMS("", target.partition("?")[0])).replace("\n", "\0")
    return canonical_target(quote(path.encode("latin-1", "replace"), safe=_RESERVED))


def _without_dot_segments_and_slash(path: str) -> str:
    whole = without_dot_segments(path)
    return whole[:-1] or "/" if path.endswith(("/.", "/..")) else whole


def _with_some_escapes_undone(target: str) -> str:
    path, question, query = target.partition("?")
    path = _UNDONE_IN_PATHS(lambda escape: unquote(escape[0]), path)
    query = _UNDONE_IN_QUERIES(lambda escape: unquote(escape[0]), query)
    return canonical_target(path + question + query)


_CHANGES: Final[tuple[tuple[str, _Change], ...]] = (
    ("?", lambda target: target.removesuffix("?")),
    (";", _in_path(lambda path: _LAST_PARAMS("", path))),
    ("/.", _in_path(without_dot_segments)),
    ("/.", _in_path(_without_dot_segments_and_slash)),
    ("%", _with_some_escapes_undone),
    ("%", lambda target: canonical_target(quote(unquote_to_bytes(target), safe=f"{_RESERVED}?"))),
    ("%5C", lambda target: target.replace("%5C", "/")),  # a backslash
    (";", _in_path(lambda path: re.sub(";[^/]*", "", path))),
    ("/.", _in_path(without_dot_segments)),
    ("//", _in_path(lambda path: re.sub("//+", "/", path))),
    ("", lambda target: target.removesuffix("?").removesuffix(";")),
)
"""The changes, each with a text without which it changes nothing. Each is made in what those before
it leave, so that all of them together are made, too."""
