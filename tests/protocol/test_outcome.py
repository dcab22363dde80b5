"""How a fetch ended: SPEC F-1, F-2, F-5, F-6, F-9, F-10."""

import pytest

from scrapy_rep.protocol.html_pages import is_not_found_page
from scrapy_rep.protocol.outcome import (
    STATUS_CLASSES,
    Available,
    Evidence,
    Unavailable,
    Unreachable,
    outcome_of,
)

URL = "https://example.com/robots.txt"


def ended(status, body=b""):
    return outcome_of(Evidence(0.0, URL, status), body)


@pytest.mark.spec("F-1", "F-2", "F-5", "F-6", "F-10")
@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        # Of redirects, those that could not be followed are left.
        (Unavailable, [300, 301, 302, 303, 304, 305, 307, 308, 399]),
        (Unavailable, [400, 401, 402, 403, 404, 405, 410, 418, 428, 430, 451, 499]),
        (Unreachable, [429, 500, 501, 502, 503, 504, 520, 530, 599]),
        (Unreachable, [-1, 0, 99, 100, 103, 199, 600, 999, None]),
    ],
)
def test_the_kind_of_a_status(kind, statuses):
    assert {type(ended(status)) for status in statuses} == {kind}
    for status in [200, 201, 203, 204, 206, 226, 299]:
        assert ended(status, b"x") == Available(b"x", Evidence(0.0, URL, status))


def test_the_table_covers_every_status_once():
    covered = [s for row in STATUS_CLASSES for s in range(row.first, row.last + 1)]
    assert covered == list(range(200, 600))


@pytest.mark.parametrize(
    ("status", "error", "is_absent", "is_refused"),
    [
        (404, None, True, False),
        (410, None, True, False),
        (503, None, True, False),  # its page says that there is no such file
        (403, None, False, True),
        (302, None, False, False),
        (200, "a challenge", False, True),
    ],
)
def test_why_a_file_is_unavailable(status, error, is_absent, is_refused):
    ended = outcome_of(Evidence(0.0, URL, status, error=error), b"404 Not Found")
    assert (ended.is_absent, ended.is_refused) == (is_absent, is_refused)


NOT_FOUND_PAGES = [
    b"<html><head><title>Page not found</title></head><body>Sorry</body></html>",
    b"<!-- header --><script>var a = 1 < 2;</script><style>p {}</style><h1>PAGE\n NOT&nbsp;FOUND</h1>",
    b"Error 404",
    "<title>Página no encontrada</title>".encode(),
    b"page not found <script> never closed",
]
OTHER_PAGES = [
    b"",
    b"<h1>Down for maintenance</h1>",
    b"<script>messages = {e404: 'page not found'}</script><h1>We'll be back</h1>",
    b"<!-- > page not found --> back soon",
    "İ <style>/* page not found */</style> back soon".encode(),  # longer in lower case
    b"<h1>Back soon</h1>" + b"words " * 200 + b"page not found",
    b"<" * 70_000 + b"page not found",
    bytes(range(256)),
]


@pytest.mark.spec("F-9")
@pytest.mark.parametrize("page", NOT_FOUND_PAGES)
def test_a_5xx_whose_page_says_not_found_is_a_404(page):
    assert is_not_found_page(page)
    assert isinstance(ended(500, page), Unavailable)
    assert isinstance(ended(503, page), Unavailable)
    assert isinstance(ended(429, page), Unreachable)


@pytest.mark.spec("F-9")
@pytest.mark.parametrize("page", OTHER_PAGES)
def test_other_error_pages_are_no_404(page):
    assert not is_not_found_page(page)
    assert isinstance(ended(500, page), Unreachable)
