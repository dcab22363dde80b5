"""Robots meta tags and X-Robots-Tag (SPEC R-1 to R-4)."""

from itertools import repeat

import pytest

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.meta_tags import TOO_MANY, Tags, of_header, of_meta, of_page

NONE = Tags()
NOINDEX = Tags(noindex=True)
NOFOLLOW = Tags(nofollow=True)
BOTH = Tags(noindex=True, nofollow=True)
US = ("MyBot-images", "mybot")


@pytest.mark.spec("R-1", "R-2", "R-3")
@pytest.mark.parametrize(
    ("name", "content", "tags"),
    [
        ("robots", "noindex,nofollow", BOTH),
        ("robots", "all", NONE),
        ("robots", "all, noindex", NOINDEX),
        ("robots", "", NONE),
        ("robots", "noindex; nofollow", BOTH),
        ("robots", "noindex nofollow", BOTH),
        ("robots", '"noindex, nofollow"', BOTH),
        ("robots", "no-index no follow", NONE),
        ("robots", "max-image-preview:none;noindex", NOINDEX),
        ("mybot-IMAGES", "noindex", NOINDEX),
        ("googlebot", "noindex", NONE),
        ("description", "noindex", NONE),
        ("robots", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", NOFOLLOW),
        ("robots", "unavailable_after : '25 Jun 2010'", NONE),
    ],
)  # fmt: skip
def test_meta_tags(name, content, tags):
    assert of_meta(name, content, US) == tags


@pytest.mark.spec("R-3")
@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("mybot: noindex, nofollow", BOTH),
        ("robots: noindex", NOINDEX),
        ("googlebot: noindex, nofollow", NONE),
        ("googlebot: nofollow, mybot: noindex", NOINDEX),
        ("nofollow, googlebot: noindex", NOFOLLOW),
        ("mybot: unavailable_after: Fri, 25 Jun 2010 15:00:00 PST", NONE),
        ("unavailable_after: 2010-09-21T15:00:00+02:00, nofollow", NOFOLLOW),
        ("otherbot: unavailable_after: Friday, 25-Aug-06 15:00:00 EST, nofollow", NONE),
        ('"otherbot": noindex, nofollow', NONE),
        ('"mybot": noindex', NOINDEX),
        ("max-snippet: 20, max-image-preview: large, nofollow", NOFOLLOW),
        ("noindex nofollow", BOTH),
        ('"noindex, nofollow"', BOTH),
        ('"mybot: noindex"', NOINDEX),
        ("googlebot: nofollow; mybot: noindex", NOINDEX),
        ("googlebot: noindex nofollow", NONE),
        ("max-snippet: 20 max-image-preview: none", NONE),
        ("unavailable_after: 25 Jun 2010, 360spider: nofollow", NONE),
        ("", NONE),
        (":", NONE),
    ],
)  # fmt: skip
def test_the_same_words_in_a_header(value, tags):
    assert of_header(value, US) == tags


def test_a_page_asks_for_what_its_headers_and_its_elements_ask_for():
    metas = [("description", "noindex"), ("", ""), ("MyBot", "nofollow"), ("otherbot", "none")]
    assert of_page((), metas, US) == NOFOLLOW
    assert of_page(["otherbot: none", "mybot: noindex"], metas, US) == BOTH
    assert of_page((), (), US) == NONE


@pytest.mark.parametrize(
    ("headers", "metas"),
    [
        (repeat("all"), ()),
        (["x," * MAX_TAG_TEXT], ()),
        ((), repeat(("robots", "all"))),
        ((), repeat(("robots", ""))),
        ((), repeat(("description", "words"))),
        ((), [("robots", "x," * MAX_TAG_TEXT)]),
        (["a" * MAX_TAG_TEXT], [("mybot", "")]),
    ],
    ids=["headers", "header", "metas", "empty", "of others", "meta", "together"],
)
def test_a_page_with_more_than_counts_is_taken_to_say_none(headers, metas):
    assert of_page(headers, metas, US) is TOO_MANY
    assert TOO_MANY == BOTH


def test_the_limit_is_the_longest_text_that_is_read():
    assert of_page(["x" * MAX_TAG_TEXT], (), US) == NONE
    assert of_page((), [("robots", "x" * (MAX_TAG_TEXT - 1))], US) == NONE


def test_a_page_may_have_much_that_is_not_meant_for_us():
    long = [("description", "x" * MAX_TAG_TEXT)] * (MAX_META_ELEMENTS - 1)
    assert of_page((), [*long, ("robots", "noindex")], US) == NOINDEX


def test_tags_are_true_where_they_ask_for_something():
    assert [bool(tags) for tags in (NONE, NOINDEX, NOFOLLOW, BOTH)] == [False, True, True, True]
    assert NOINDEX | NOFOLLOW == BOTH
