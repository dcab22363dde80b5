"""Plain text that a browser has wrapped in HTML, as the only ``pre`` element.

Browsers, and APIs that render pages, return robots.txt in this form. If it were parsed as it is,
the first line would be lost, and with it the first group.
"""

from __future__ import annotations

import re
from typing import Final

_MAX_HEAD: Final = 4_096
"""Maximum number of bytes before the text; browsers write less than 300."""
_START: Final = rb"(?:\xef\xbb\xbf)?\s*"
_PAGE: Final = re.compile(_START + rb"<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE)
_HEAD: Final = re.compile(
    _START + rb"(?:<!doctype[^>]*>\s*)?<html(?:\s[^>]*)?>\s*"
    rb"(?:<head>\s*(?:<(?:meta|link)\s[^>]*>\s*)*</head>\s*)?"
    rb"<body(?:\s[^>]*)?>\s*<pre(?:\s[^>]*)?>",
    re.IGNORECASE,
)
# The empty element is written by Chromium after text that it can format.
_TAIL: Final = re.compile(
    rb'</pre>\s*(?:<div class="json-formatter-container"></div>\s*)?</body>\s*</html>\s*',
    re.IGNORECASE,
)
# The escapes of these characters (HTML, 'Serializing HTML fragments'). Browsers write no others, so
# any others belong to the text.
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
    """Return whether a text begins like an HTML page; the Content-Type doesn't matter."""
    return _PAGE.match(text) is not None


def unwrap(text: bytes, *, truncated: bool) -> bytes:
    """Return the plain text that a browser has wrapped; any other text unchanged.

    If ``truncated`` is true, the text was cut and may lack its end.
    """
    head = _HEAD.match(text, 0, _MAX_HEAD)
    if head is None:
        return text
    # In wrapped text, a '<' of the file is escaped.
    end = text.find(b"<", head.end())
    if end < 0:
        if not truncated:
            return text
        end = len(text)
    elif _TAIL.fullmatch(text, end) is None:
        return text
    return _REFERENCE.sub(lambda found: _REFERENCES[found.group()], text[head.end() : end])
