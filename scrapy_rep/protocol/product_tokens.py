"""Product tokens: the names of crawlers in ``User-agent`` lines (RFC 9309 §2.2.1)."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

Tokens = tuple[str, ...]
"""The product tokens of a crawler, the most specific first."""

_PRODUCT_TOKEN: Final = re.compile(r"[A-Za-z_-]+").fullmatch
_WIDE_TOKEN: Final = re.compile(r"[\w.-]+").match
_CONFIGURED: Final = re.compile(r"[A-Za-z0-9._-]*\*?").fullmatch
_NOBODY: Final = ("", "*")
_HEADER: Final = re.compile(r"[\s/(]").search
# A name in a User-Agent has a letter, a version may have none. The look-ahead keeps the time of a
# match proportional to the length of the text.
_NAME: Final = re.compile(r"(?=[\d._-]*[^\W\d_])([\w.-]+)")
_VERSIONED: Final = re.compile(_NAME.pattern + r"/v?[0-9]")
# A name in a comment, with or without a version. A host with a path (my.bot/about) is no name.
_WHOLE: Final = re.compile(rf"(?![\w-]*\.[\w.-]*/\D){_NAME.pattern}(?:/|\Z)")
_BEHIND_COMPATIBLE: Final = re.compile(
    r"(?:\A|;)\s*compatible\s*;\s*([^\s;,]+)", re.IGNORECASE
).findall
_PARENTHESES: Final = re.compile(r"[()]")
_LIST: Final = re.compile(r"\s*[A-Za-z0-9._-]+(?:\s*,\s*[A-Za-z0-9._-]+)+\s*").fullmatch
"""Matches a list of names. A User-Agent doesn't match: it has commas in comments only."""
_CHUNK: Final = re.compile(r"[^\s;,]+").findall
_NOT_A_NAME: Final = re.compile(r"://|@|^\+|^www\.", re.IGNORECASE).search

_BROWSERS: Final = """
    applewebkit chrome chromium compatible crios ddg edg edga edge edgios epiphany firefox fxios
    gecko goanna gsa headlesschrome iceweasel khtml konqueror like mobile mozilla msie netscape
    opera opr palemoon presto safari samsungbrowser seamonkey trident ubuntu version vivaldi
    yabrowser
"""
_SYSTEMS: Final = """
    amd64 android arm64 cros dalvik darwin freebsd haiku intel ios ipad iphone ipod linux mac
    macintosh netbsd openbsd sunos tizen u watchos win32 win64 win95 win98 windows windows98 wow64
    x11 x64 x86_64
"""
_FOR_SHOW: Final = frozenset((_BROWSERS + _SYSTEMS).split())
"""Names of browsers, operating systems and machines in lower case: they identify no crawler."""


def names_in_tags(tokens: Iterable[str]) -> set[str]:
    """Return the names in lower case by which robots tags address a crawler with these tokens."""
    return {"robots", *(token.lower() for token in tokens)}


def is_product_token(token: str) -> bool:
    """Return whether ``token`` is a product token by RFC 9309 §2.2.1."""
    return bool(_PRODUCT_TOKEN(token))


def tokens_of_setting(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return the tokens in the value of a setting, the most specific first.

    A string may have several tokens, separated by commas. A whole User-Agent is replaced by its
    tokens. A ``*`` after a token, blanks and repetitions are dropped, so ``*`` has no token.

    :raises ValueError: if a name has other characters than ASCII letters, digits, ``.``, ``_`` and
        ``-``, or a whole User-Agent no token, or letters outside ASCII before its first comment.
    """
    if isinstance(value, str):
        value = [value]
    values = [part for item in value for part in (item.split(",") if _LIST(item) else [item])]
    return _distinct(token for item in values for token in _tokens_of_item(item.strip()))


def _tokens_of_item(item: str) -> tuple[str, ...]:
    tokens = tokens_of_name(item)
    names, _, _ = item.partition("(")
    is_whole = _CONFIGURED(item) or (_HEADER(item) and names.isascii())
    if not is_whole or not (tokens or item in _NOBODY):
        raise ValueError(f"{item!r} is no product token")
    return tokens


def tokens_of_name(name: str | bytes) -> tuple[str, ...]:
    """Return the tokens of a whole User-Agent, which has blanks, ``/`` or ``(``, or of a name.

    That of a name is the text at its beginning with letters and digits, ``.``, ``_`` and ``-``.
    """
    name = _text(name).strip()
    if _HEADER(name):
        return tokens_of_header(name)
    token = _WIDE_TOKEN(name)
    return (token[0],) if token else ()


def tokens_of_header(user_agent: str | bytes) -> tuple[str, ...]:
    """Return the tokens of a User-Agent header (RFC 9110 §10.1.5), the most specific first.

    Product names outside comments come first, then the names in comments: the name after
    ``compatible;`` and all names in the form ``name/version``. Names of browsers and operating
    systems, URLs and mail addresses are skipped, so there may be no token.
    """
    user_agent = _text(user_agent)
    products: list[str] = []
    comments: list[str] = []
    depth = start = 0
    for parenthesis in _PARENTHESES.finditer(user_agent + "("):
        text = user_agent[start : parenthesis.start()]
        start = parenthesis.end()
        if depth:
            comments += _names_in(" ".join(_BEHIND_COMPATIBLE(text)), _WHOLE)
            comments += _names_in(text, _VERSIONED)
        else:
            products += _names_in(text, _NAME)
        depth = depth + 1 if parenthesis[0] == "(" else max(depth - 1, 0)
    return _distinct(token for token in products + comments if token.lower() not in _FOR_SHOW)


def _text(name: str | bytes) -> str:
    """Return ``name`` as text: bytes are UTF-8, or else Latin-1."""
    if isinstance(name, str):
        return name
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("latin-1")


def _names_in(text: str, name: re.Pattern[str]) -> Iterable[str]:
    for chunk in _CHUNK(text):
        match = None if _NOT_A_NAME(chunk) else name.match(chunk)
        if match:
            yield match[1]


def _distinct(tokens: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for token in tokens:
        first.setdefault(token.lower(), token)
    return tuple(first.values())
