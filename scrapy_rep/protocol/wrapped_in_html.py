"""Plain text that a browser has wrapped in HTML, as the only ``pre`` element.

Browsers, and APIs that render pages, return robots.txt in this form. Parsed as robots.txt, the HTML
would be a part of the first line of the file. This line would be lost, and with it the first group.
"""

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
# Chromium writes the empty element after text that it can format, such as JSON.
_TAIL: Final = re.compile(
    rb'</pre>\s*(?:<div class="json-formatter-container"></div>\s*)?</body>\s*</html>\s*',
    re.IGNORECASE,
)
# The escapes that browsers write (HTML, 'Serializing HTML fragments'). Any other escape is part of
# the text itself, and is not undone.
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
    """Return whether a text begins with ``<!doctype html`` or ``<html``, after blanks or none."""
    return _PAGE.match(text) is not None


def unwrap(text: bytes, *, truncated: bool) -> bytes:
    """Return the plain text that a browser has wrapped in HTML; else ``text``, the same object.

    If ``truncated`` is true, the text was cut, so that all of the end of the HTML may be missing.
    """
    head = _HEAD.match(text, 0, _MAX_HEAD)
    if head is None:
        return text
    # In wrapped text, a '<' of the file is escaped, so the next '<' begins the end of the HTML.
    end = text.find(b"<", head.end())
    if end < 0:
        if not truncated:
            return text
        end = len(text)
    elif _TAIL.fullmatch(text, end) is None:
        return text
    return _REFERENCE.sub(lambda found: _REFERENCES[found.group()], text[head.end() : end])
