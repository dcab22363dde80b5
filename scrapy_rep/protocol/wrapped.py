"""Plain text as browsers wrap it: HTML with one ``pre`` and nothing else.

Who fetches robots.txt with a browser, or with an API that renders pages, gets it in this form. Read
as it is, its first line would be lost, and with it the group that begins there.
"""

from __future__ import annotations

import re
from typing import Final

_MAX_HEAD: Final = 4_096
"""Bytes before the text; Chromium's, Firefox's and WebKit's take less than 300."""
_START: Final = rb"(?:\xef\xbb\xbf)?\s*"
_PAGE: Final = re.compile(_START + rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_HEAD: Final = re.compile(
    _START + rb"(?:<!doctype[^>]*>\s*)?<html(?:\s[^>]*)?>\s*"
    rb"(?:<head>\s*(?:<(?:meta|link)\s[^>]*>\s*)*</head>\s*)?"
    rb"<body(?:\s[^>]*)?>\s*<pre(?:\s[^>]*)?>",
    re.IGNORECASE,
)
# The empty element is Chromium's, behind text that it offers to format.
_TAIL: Final = re.compile(
    rb'</pre>\s*(?:<div class="json-formatter-container"></div>\s*)?</body>\s*</html>\s*',
    re.IGNORECASE,
)
# What is written for these characters in text (HTML, 'Serializing HTML fragments'). Nothing else
# is undone: a text that has them was escaped once, and says what it says.
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
    """Return whether a text begins as an HTML page does, whatever its Content-Type says."""
    return _PAGE.match(text) is not None


def unwrapped(text: bytes, *, truncated: bool) -> bytes:
    """Return the plain text that a browser has wrapped; any other text, itself, as it is.

    ``truncated`` says that the text was cut, and so may lack its end.
    """
    head = _HEAD.match(text, 0, _MAX_HEAD)
    if head is None:
        return text
    # In a wrapped text each '<' of its own is a reference.
    end = text.find(b"<", head.end())
    if end < 0:
        if not truncated:
            return text
        end = len(text)
    elif _TAIL.fullmatch(text, end) is None:
        return text
    return _REFERENCE.sub(lambda found: _REFERENCES[found.group()], text[head.end() : end])
