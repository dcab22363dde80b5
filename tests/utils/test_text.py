"""How texts are shown."""

import pytest

from scrapy_rep.utils.text import MAX_SHOWN, counted, short, without_credentials


def test_what_is_long_is_cut_with_an_ellipsis():
    assert short("x" * MAX_SHOWN) == "x" * MAX_SHOWN
    assert short("x" * (MAX_SHOWN + 1)) == "x" * (MAX_SHOWN - 1) + "…"
    assert short("words", 4) == "wor…"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:hush@a.example/x@y?z=@", "http://a.example/x@y?z=@"),
        ("http:///me:hush@a.example/", "http:///a.example/"),
        ("https:////me:hush@a.example", "https:////a.example"),
        ("http:me:hush@a.example/?x=http://y", "http:a.example/?x=http://y"),
        ("http://me:hu@sh@a.example/", "http://a.example/"),
        ("http://a.example/?q=me:hush@b", "http://a.example/?q=me:hush@b"),
        ("redis://:hush@a.example/0", "redis://a.example/0"),
    ],
)
def test_no_url_is_shown_with_its_password(url, shown):
    assert without_credentials(url) == shown


def test_one_is_counted_in_the_singular():
    assert [counted(number, "line") for number in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
