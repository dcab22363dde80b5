"""Plain text as browsers wrap it, and HTML that is none of that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.html_pages import is_html, unwrap

TEXT = b"User-agent: *\nDisallow: /a?b=1&c=<d>\n\xc2\xa0Disallow: /\t\"q' &amp; </pre>\n"
ESCAPED = (
    b"User-agent: *\nDisallow: /a?b=1&amp;c=&lt;d&gt;\n"
    b"&nbsp;Disallow: /\t\"q' &amp;amp; &lt;/pre&gt;\n"
)
# As they come out of Chromium 156, and as people show those of Firefox and WebKit.
CHROMIUM = (
    b'<html><head><meta name="color-scheme" content="light dark"></head><body>'
    b'<pre style="word-wrap: break-word; white-space: pre-wrap;">',
    b"</pre></body></html>\n",
)
CHROMIUM_JSON = (
    b'<html><head><meta name="color-scheme" content="light dark"><meta charset="utf-8"></head>'
    b"<body><pre>",
    b'</pre><div class="json-formatter-container"></div></body></html>',
)
FIREFOX = (
    b'<html><head><link rel="stylesheet" href="resource://content-accessible/plaintext.css">'
    b"</head><body><pre>",
    b"</pre></body></html>",
)
WEBKIT = (
    b'<html><head></head><body><pre style="word-wrap: break-word; white-space: pre-wrap;">',
    b"</pre></body></html>",
)
OTHERS = [
    (b"<!DOCTYPE html>\n<html>\n<head>\n</head>\n<body>\n<pre>", b"</pre>\n</body>\n</html>\n\n"),
    (b"\xef\xbb\xbf \n<HTML><BODY><PRE>", b"</PRE></BODY></HTML>"),
    (b'<html lang="en"><body class="a"><pre>', b"</pre></body></html>"),
]
WRAPPINGS = [CHROMIUM, CHROMIUM_JSON, FIREFOX, WEBKIT, *OTHERS]


def escaped(text):
    for char, reference in ((b"&", b"&amp;"), (b"<", b"&lt;"), (b">", b"&gt;"), (b"\xc2\xa0", b"&nbsp;")):  # fmt: skip
        text = text.replace(char, reference)
    return text


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_a_browser_wrapped_is_plain_text_again(wrapping):
    start, end = wrapping
    assert escaped(TEXT) == ESCAPED
    assert unwrap(start + ESCAPED + end, truncated=False) == TEXT
    assert is_html(start)


@given(
    st.one_of(
        st.binary(),
        st.text(st.sampled_from("&<>;amplt#39\xa0\r\n</pre>"), max_size=30).map(str.encode),
    ),
    st.sampled_from(WRAPPINGS),
    st.booleans(),
)
def test_any_text_that_was_wrapped_comes_out_as_it_was(text, wrapping, truncated):
    start, end = wrapping
    assert unwrap(start + escaped(text) + end, truncated=truncated) == text


@given(st.integers(0, 400), st.sampled_from(WRAPPINGS))
def test_the_lines_before_a_cut_are_unwrapped(size, wrapping):
    start, end = wrapping
    whole = b"User-agent: *\n" + b"Disallow: /a&b\n" * 30
    page = start + escaped(whole) + end
    cut = page[: len(start) + size]
    cut = cut[: max(cut.rfind(b"\n") + 1, len(start))]
    text = unwrap(cut, truncated=True)
    if b"</pre" not in cut.lower():
        assert whole.startswith(text)
        assert unwrap(cut, truncated=False) is cut


NOT_WRAPPED = [
    b"",
    TEXT,
    b"<html>",
    b"<html><head><title>x</title></head><body><pre>a\n</pre></body></html>",
    b"<html><head></head><body><pre>a\n</pre>more</body></html>",
    b"<html><head></head><body><pre>a\n</pre><pre>a\n</pre></body></html>",
    b"<html><head></head><body><pre>a\n<b>c</b></pre></body></html>",
    b"<html><head></head><body><pre>a\n</pre></body></html>\nUser-agent: *",
    b"<html><head></head><bodyguard><pre>a\n</pre></bodyguard></html>",
    b"User-agent: *\n<html><head></head><body><pre>a\n</pre></body></html>",
    b"<html>" + b" " * 4_096 + b"<body><pre>a\n</pre></body></html>",
]


@pytest.mark.parametrize("truncated", [False, True])
@pytest.mark.parametrize("text", NOT_WRAPPED)
def test_anything_else_is_returned_as_it_is(text, truncated):
    assert unwrap(text, truncated=truncated) is text


def test_other_references_stay():
    start, end = CHROMIUM
    assert unwrap(start + b"&copy &#64; &amp;lt; &quot;&#39;" + end, truncated=False) == (
        b"&copy &#64; &lt; \"'"
    )


def test_html_is_known_by_its_beginning():
    pages = [b"<HTML lang=en>", b"\xef\xbb\xbf\r\n <!DocType HTML>", b"<!doctype html PUBLIC"]
    assert all(map(is_html, pages))
    others = [b"", b"User-agent: *\n# <html>", b"<htmlx>", b"<!doctype xml>", b"<!-- a --><p>"]
    assert not any(map(is_html, others))


def test_a_hostile_page_costs_no_more_than_its_length():
    # A quadratic one would not end.
    for part in [b" ", b"<meta a>", b"<head>", b"&amp;", b"&", b"<pre>", b"</pre>", b"</pre> "]:
        for start, _ in [*WRAPPINGS, (b"", b"")]:
            unwrap(start + part * (200_000 // len(part)), truncated=True)
            is_html(part * (200_000 // len(part)))
