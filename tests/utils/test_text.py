"""How texts are shown."""

from __future__ import annotations

from scrapy_rep.utils.text import MAX_SHOWN, counted, short


def test_what_is_long_is_cut_with_an_ellipsis():
    assert short("x" * MAX_SHOWN) == "x" * MAX_SHOWN
    assert short("x" * (MAX_SHOWN + 1)) == "x" * (MAX_SHOWN - 1) + "…"
    assert short("words", 4) == "wor…"


def test_one_is_counted_in_the_singular():
    assert [counted(number, "line") for number in (0, 1, 2)] == ["0 lines", "1 line", "2 lines"]
