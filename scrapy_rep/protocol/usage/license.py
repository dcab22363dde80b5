"""Licenses of RSL 1.0: their URIs are reported, but the licenses are not read."""

import re
from typing import Final

from scrapy_rep.protocol.usage.statement import (
    HEADER,
    LICENSE,
    ROBOTSTXT,
    UNKNOWN,
    Statement,
    statements_of,
)

RSL: Final = "application/rsl+xml"
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/]\S*").fullmatch
# A link of RFC 8288 §3: its URI, and its parameters. A quoted string may contain commas; without a
# closing quote it extends to the end of the header.
_LINK: Final = re.compile(r'<([^<>]*)>((?:[^,"<]|"(?:[^"\\]|\\.?)*(?:"|\Z))*)')
_PARAMETER: Final = re.compile(r';\s*(rel|type)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
_CHALLENGE: Final = re.compile(r"(?:^|,)\s*license(?=[\s,]|$)", re.IGNORECASE).search


def license_in(uri: str, line: int | None, place: str = ROBOTSTXT) -> list[Statement]:
    """Return a statement with the URI of a license; an empty list if the URI isn't absolute."""
    if not _ABSOLUTE(uri):
        return []
    return statements_of(LICENSE, {"license": UNKNOWN}, uri, line, place)


def license_in_link(value: str) -> list[Statement]:
    """Return a statement for each license in a ``Link`` header."""
    found = []
    for link in _LINK.finditer(value):
        parameters = {
            name.lower(): (quoted or plain).lower()
            for name, quoted, plain in reversed(_PARAMETER.findall(link[2]))  # the first one counts
        }
        if "license" in parameters.get("rel", "").split() and parameters.get("type") == RSL:
            found += license_in(link[1].strip(), None, HEADER)
    return found


def asks_for_license(value: str) -> bool:
    """Return whether a ``WWW-Authenticate`` header requires a license (RSL 1.0)."""
    return _CHALLENGE(value) is not None
