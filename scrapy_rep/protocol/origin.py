"""The origin of a URL, and its target.

An origin is scheme, host and port. A robots.txt is valid for one origin (SPEC S-1, RFC 9309 §2.3).
A target is path and query in canonical form. The patterns of rules are matched with it.
"""

import re
from functools import lru_cache
from ipaddress import IPv6Address
from sys import intern
from typing import Final, NamedTuple
from urllib.parse import urljoin

from scrapy_rep.protocol.canonical import NEEDED_IN_QUERY, PLAIN, canonical_target
from scrapy_rep.protocol.limits import MAX_HOST_LENGTH, MAX_PORT

ROBOTSTXT: Final = "/robots.txt"
"""The target of robots.txt, which is always allowed (RFC 9309 §2.2.2, SPEC S-9)."""
DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ftp": 21}
"""Schemes that can have a robots.txt, and their default ports (SPEC S-1, S-5)."""

_MAX_CACHED_LENGTH: Final = 300
"""Maximum length of a URL, up to its path, whose origin is cached, in characters."""

_AUTHORITY: Final = re.compile(r"(https?|ftp)://([^/?#]*)", re.IGNORECASE).match
_NO_AUTHORITY: Final = re.compile(r"[\\\x00-\x20\x7f]").search
# RFC 3986 §3.2.2, without escapes.
_HOST: Final = re.compile(r"(?!\.)[a-z0-9._~!&'()*+,;=$-]+").fullmatch
_PORT: Final = re.compile(r"[0-9]*").fullmatch
_BEHIND_AUTHORITY: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?://[^/?#]*)?([^#]*)").match
# Most URLs match these patterns: their target already is in canonical form, and the server has no
# userinfo, no IPv6 address, and no character that is escaped.
_PLAIN: Final = PLAIN.replace("#", "")
_TARGET: Final = f"(/[{_PLAIN}]*(?:{NEEDED_IN_QUERY}[{_PLAIN}]*)*)"
_SERVER: Final = "https?://[A-Za-z0-9.:-]"
_LONGEST_SERVER: Final = _MAX_CACHED_LENGTH - len("https://")
_PLAIN_URL: Final = re.compile(f"({_SERVER}{{1,{_LONGEST_SERVER}}}){_TARGET}").fullmatch
_PLAIN_TARGET: Final = re.compile(f"{_SERVER}+{_TARGET}").fullmatch


class Origin(NamedTuple):
    """Scheme, host and port of a URL, normalised by ``origin_of``, not by the constructor."""

    scheme: str
    host: str
    """The host in lower case; international names in punycode, IPv6 addresses without brackets."""
    port: int
    """The port of the URL, else the default port of the scheme."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"

    @property
    def robotstxt_url(self) -> str:
        """The URL of the robots.txt of this origin (SPEC S-4, S-8)."""
        return f"{self}{ROBOTSTXT}"


def split_url(url: str) -> tuple[Origin, str]:
    """Return origin and target of a URL, as ``origin_of`` and ``target_of`` do, in one pass.

    :raises ValueError: as ``origin_of`` does.
    """
    plain = _PLAIN_URL(url)
    if plain:
        server, target = plain.groups()
        return _cached_origin(server), target
    return origin_of(url), target_of(url)


def origin_of(url: str) -> Origin:
    """Return the origin of an absolute http, https or ftp URL.

    Userinfo is dropped. A dot at the end of the host is kept: servers receive ``example.com.`` as
    another value of the Host header, so it has a robots.txt of its own.

    :raises ValueError: if the URL has another scheme, no host, a host or port that URL parsers read
        differently (escapes, backslashes, blanks), more than 255 characters, a port above 65,535.
    """
    # Only the text before the first slash after the scheme determines the origin.
    end = url.find("/", len("https://"))
    prefix = url if end < 0 else url[:end]
    if len(prefix) > _MAX_CACHED_LENGTH:
        return _parse_origin(prefix)
    return _cached_origin(prefix)


def absolute_url(url: str, base: str) -> str | None:
    """Return ``url``, maybe relative to ``base``, as an absolute http or https URL, or None."""
    try:
        absolute = urljoin(base, url)
        scheme = origin_of(absolute).scheme
    except ValueError:
        return None
    return absolute if scheme in {"http", "https"} else None


def target_of(url: str) -> str:
    """Return path and query of a URL in canonical form, with ``/`` for an empty path.

    Any str is accepted. Without a scheme and authority, all text before ``#`` is path and query.
    """
    plain = _PLAIN_TARGET(url)
    if plain:
        return plain[1]
    behind = _BEHIND_AUTHORITY(url)
    target = behind[1] if behind else ""
    return canonical_target(target if target.startswith("/") else f"/{target}")


def _parse_origin(url: str) -> Origin:
    match = _AUTHORITY(url)
    if not match:
        raise ValueError("not an absolute http, https or ftp URL")
    if _NO_AUTHORITY(match[2]):
        raise ValueError("backslash, blank or control character before the path")
    scheme = intern(match[1].lower())
    server = match[2].rpartition("@")[2]  # without userinfo, as error messages contain the server
    if server.startswith("["):
        address, bracket, rest = server[1:].partition("]")
        if not bracket or "%" in address or (rest and rest[0] != ":"):
            raise ValueError(f"bad IPv6 host: {server!r}")
        host, port = IPv6Address(address).compressed, rest[1:]
    else:
        host, _, port = server.partition(":")
        host = _normalise_host_name(host)
    if not _PORT(port) or len(port) > len(str(MAX_PORT)) or int(port or 0) > MAX_PORT:
        raise ValueError(f"bad port: {server!r}")
    return Origin(scheme, host, int(port) if port else DEFAULT_PORTS[scheme])


def _normalise_host_name(host: str) -> str:
    if not host.isascii() and len(host) <= MAX_HOST_LENGTH:
        # IDNA 2003, which w3lib uses for the URLs of Scrapy's requests. For some characters (ß) the
        # versions of IDNA differ, and robots.txt must be fetched from the same host as the page.
        host = host.encode("idna").decode("ascii")
    if len(host) > MAX_HOST_LENGTH:
        raise ValueError("host name too long")
    host = host.lower()
    if not _HOST(host):
        raise ValueError(f"bad host {host!r}")
    return host


_cached_origin = lru_cache(1_024)(_parse_origin)
