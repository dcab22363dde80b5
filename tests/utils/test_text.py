"""How texts are shown."""

from __future__ import annotations

from scrapy_rep.utils.text import MAX_SHOWN, short


def test_what_is_long_is_cut_with_an_ellipsis():
    assert short("x" * MAX_SHOWN) == "x" * MAX_SHOWN
    assert short("x" * (MAX_SHOWN + 1)) == "x" * (MAX_SHOWN - 1) + "…"
    assert short("words", 4) == "wor…"
