"""Robots meta tags and X-Robots-Tag (SPEC R-1 to R-4)."""

from datetime import datetime, timezone
from itertools import repeat

import pytest

from scrapy_rep.protocol.limits import MAX_META_ELEMENTS, MAX_TAG_TEXT
from scrapy_rep.protocol.meta_tags import TOO_MANY, Tags, of_header, of_meta, of_page
from tests.protocol.headers import PARTS

NOW = 1_300_000_000.0  # 2011-03-13
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
        ("ROBOTS", " NoIndex , NOFOLLOW ", BOTH),
        ("robots", "noindex", NOINDEX),
        ("robots", "nofollow", NOFOLLOW),
        ("robots", "none", BOTH),
        ("robots", "all", NONE),
        ("robots", "index, follow", NONE),
        ("robots", "all, noindex", NOINDEX),
        ("robots", "", NONE),
        ("robots", "noindexing", NONE),
        ("robots", "noindex; nofollow", BOTH),
        ("robots", "noindex;nofollow", BOTH),
        ("robots", "noindex nofollow", BOTH),
        ("robots", "index\tNOFOLLOW\n", NOFOLLOW),
        ("robots", '"noindex, nofollow"', BOTH),
        ("robots", "'noindex' 'nofollow'", BOTH),
        ("robots", "no-index no follow", NONE),
        ("robots", "max-snippet: 20 nofollow", NOFOLLOW),
        ("robots", "max-image-preview: none", NONE),
        ("robots", "max-image-preview:none;noindex", NOINDEX),
        ("robots", "max-snippet:-1, nofollow", NOFOLLOW),
        ("mybot", "noindex", NOINDEX),
        ("mybot-IMAGES", "noindex", NOINDEX),
        ("googlebot", "noindex", NONE),
        ("description", "noindex", NONE),
        ("robots", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, nofollow", BOTH),
        ("robots", "nofollow, UNAVAILABLE_AFTER: 2010-06-25", BOTH),
        ("robots", "unavailable_after: 25-Jun-2030 15:00:00 EST, nofollow", NOFOLLOW),
        ("robots", "unavailable_after: Fri, 25 Jun 2010 15:00:00 nofollow", BOTH),
        ("robots", "nofollow;unavailable_after: 2010-06-25;max-snippet:1", BOTH),
        ("robots", "unavailable_after : '25 Jun 2010'", NOINDEX),
        ("robots", "unavailable_after: Samstag, 25. Juni 2010 15:00 Uhr, nofollow", NOFOLLOW),
        ("robots", "unavailable_after 25 Jun 2010", NONE),
        ("robots", "unavailable_after: noindex", NONE),
        ("robots", "unavailable_after:", NONE),
    ],
)  # fmt: skip
def test_meta_tags(name, content, tags):
    assert of_meta(name, content, US, NOW) == tags


@pytest.mark.spec("R-3")
@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("noindex", NOINDEX),
        ("noindex, nofollow", BOTH),
        ("mybot: noindex, nofollow", BOTH),
        ("MyBot:noindex", NOINDEX),
        ("robots: noindex", NOINDEX),
        ("googlebot: noindex, nofollow", NONE),
        ("googlebot: nofollow, mybot: noindex", NOINDEX),
        ("nofollow, googlebot: noindex", NOFOLLOW),
        ("mybot: nofollow, googlebot: noindex", NOFOLLOW),
        ("mybot: unavailable_after: Fri, 25 Jun 2010 15:00:00 PST", NOINDEX),
        ("otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 PST", NONE),
        ('"otherbot": noindex, nofollow', NONE),
        ('"mybot": noindex', NOINDEX),
        ("max-snippet: 20, max-image-preview: large, nofollow", NOFOLLOW),
        ("noindex nofollow", BOTH),
        ("noindex;nofollow", BOTH),
        ('"noindex, nofollow"', BOTH),
        ('"mybot: noindex"', NOINDEX),
        ("mybot: noindex nofollow", BOTH),
        ("mybot: noindex; nofollow", BOTH),
        ("googlebot: nofollow; mybot: noindex", NOINDEX),
        ("googlebot: nofollow mybot : noindex", NOINDEX),
        ("googlebot: noindex nofollow", NONE),
        ("max-snippet: 20 max-image-preview: none", NONE),
        ("googlebot: unavailable_after: Friday, 25-Aug-06 15:00:00 EST nofollow", NONE),
        ("unavailable_after: 25 Jun 2010, 360spider: nofollow", NOINDEX),
        ("unavailable_after: 25 Jun 2010, 008: nofollow", NOINDEX),
        ("", NONE),
        (":", NONE),
    ],
)  # fmt: skip
def test_the_same_words_in_a_header(value, tags):
    assert of_header(value, US, NOW) == tags


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2010-09-21", "2010-09-21T00:00:00+00:00"),
        ("20100921", "2010-09-21T00:00:00+00:00"),
        ("1 Jan 2010 12:00 PST", "2010-01-01T12:00:00-08:00"),
        ("1 Jan 2010 12:00 PDT", "2010-01-01T12:00:00-07:00"),
        ("1 Jan 2010 12:00 MST", "2010-01-01T12:00:00-07:00"),
        ("1 Jan 2010 12:00 MDT", "2010-01-01T12:00:00-06:00"),
        ("1 Jan 2010 12:00 CST", "2010-01-01T12:00:00-06:00"),
        ("1 Jan 2010 12:00 CDT", "2010-01-01T12:00:00-05:00"),
        ("1 Jan 2010 12:00 EST", "2010-01-01T12:00:00-05:00"),
        ("1 Jan 2010 12:00 EDT", "2010-01-01T12:00:00-04:00"),
        ("1 Jan 2010 12:00 UTC", "2010-01-01T12:00:00+00:00"),
        ("1 Jan 2010 12:00 UT", "2010-01-01T12:00:00+00:00"),
        ("1 Jan 2010 12:00 WET", "2010-01-01T12:00:00+00:00"),
        ("1 Jan 2010 12:00 BST", "2010-01-01T12:00:00+01:00"),
        ("1 Jan 2010 12:00 CET", "2010-01-01T12:00:00+01:00"),
        ("1 Jan 2010 12:00 WEST", "2010-01-01T12:00:00+01:00"),
        ("1 Jan 2010 12:00 CEST", "2010-01-01T12:00:00+02:00"),
        ("1 Jan 2010 12:00 EET", "2010-01-01T12:00:00+02:00"),
        ("1 Jan 2010 12:00 EEST", "2010-01-01T12:00:00+03:00"),
        ("1 Jan 2010 12:00 MSK", "2010-01-01T12:00:00+03:00"),
        ("1 Jan 2010 12:00 JST", "2010-01-01T12:00:00+09:00"),
        ("2010-09-21 15:00:00 GMT", "2010-09-21T15:00:00+00:00"),
        ("2010-09-21 15:00:00 PST", "2010-09-21T15:00:00-08:00"),
        ("2010-09-21, 15:00 EDT", "2010-09-21T15:00:00-04:00"),
        ("2010-09-21T15:00:00Z", "2010-09-21T15:00:00+00:00"),
        ("2010-09-21t15:00:00.123+02:00", "2010-09-21T15:00:00+02:00"),
        ("2010-09-21T15:00:00-0130", "2010-09-21T15:00:00-01:30"),
        ("2010-09-21T15:00+02", "2010-09-21T15:00:00+02:00"),
        ("20100921T150000Z", "2010-09-21T15:00:00+00:00"),
        ("20100921T1500+0200", "2010-09-21T15:00:00+02:00"),
        ("21 Jul 2010", "2010-07-21T00:00:00+00:00"),
        ("21 July 2010 15:00", "2010-07-21T15:00:00+00:00"),
        ("21-Jul-2010 15:00:00 EST", "2010-07-21T15:00:00-05:00"),
        ("Wednesday, 21-Jul-10 15:00:00 UTC", "2010-07-21T15:00:00+00:00"),
        ("Wed, 21 Jul 2010 15:00:00 +0100", "2010-07-21T15:00:00+01:00"),
        ("Wed 21 Jul 69 15:00 CDT", "1969-07-21T15:00:00-05:00"),
        ("July 21st, 2010, 15:00:00 GMT", "2010-07-21T15:00:00+00:00"),
        ("Wed Jul 21 15:00:00 2010", "2010-07-21T15:00:00+00:00"),
        ("Wed Jul 21 15:00:00 PST 2010", "2010-07-21T15:00:00-08:00"),
        ("21 Jul 2010 15:00:00 XYZ", "2010-07-21T15:00:00+00:00"),
        ("31 Feb 2010", None),
        ("2010-13-21", None),
        ("0000-01-01", None),
        ("2010-09-21 24:30", None),
        ("2010-09-21 15:00 +9900", None),
        ("Wed Jul 21 15:00:00 CEST 2010", "2010-07-21T15:00:00+02:00"),
        ("2010-09-21T24:00:00Z", "2010-09-21T23:59:59+00:00"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ("21/07/2010", None),
        ("15:00:00 GMT", None),
        ("Wednesday", None),
        ("2010", None),
    ],
)
def test_a_date_is_read_in_each_usual_form(text, moment):
    passed = datetime.max.replace(tzinfo=timezone.utc)
    if moment is not None:
        passed = datetime.fromisoformat(moment)
        just_before = passed.timestamp() - 0.5
        assert of_meta("robots", f"unavailable_after: {text}", US, just_before) == NONE
        assert of_header(f"mybot: unavailable_after: {text}", US, just_before) == NONE
    tags = NONE if moment is None else NOINDEX
    for content in (text, f'"{text}"', f"{text}, all", f"{text};all", f"{text} index"):
        assert of_meta("robots", f"unavailable_after: {content}", US, passed.timestamp()) == tags
        assert of_header(f"unavailable_after:{content}", US, passed.timestamp()) == tags
        more = f"noarchive unavailable_after: {content}, nofollow"
        assert of_meta("robots", more, US, passed.timestamp()) == tags | NOFOLLOW
        assert of_header(more, US, passed.timestamp()) == tags | NOFOLLOW


def test_a_page_asks_for_what_its_headers_and_its_elements_ask_for():
    metas = [("description", "noindex"), ("", ""), ("MyBot", "nofollow"), ("otherbot", "none")]
    assert of_page((), metas, US, NOW) == NOFOLLOW
    assert of_page(["otherbot: none", "mybot: noindex"], metas, US, NOW) == BOTH
    assert of_page((), (), US, NOW) == NONE


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
    assert of_page(headers, metas, US, NOW) is TOO_MANY
    assert TOO_MANY == BOTH


def test_the_limit_is_the_longest_text_that_is_read():
    assert of_page(["x" * MAX_TAG_TEXT], (), US, NOW) == NONE
    assert of_page((), [("robots", "x" * (MAX_TAG_TEXT - 1))], US, NOW) == NONE


def test_a_page_may_have_much_that_is_not_meant_for_us():
    long = [("description", "x" * MAX_TAG_TEXT)] * (MAX_META_ELEMENTS - 1)
    assert of_page((), [*long, ("robots", "noindex")], US, NOW) == NOINDEX


def test_tags_are_true_where_they_ask_for_something():
    assert [bool(tags) for tags in (NONE, NOINDEX, NOFOLLOW, BOTH)] == [False, True, True, True]
    assert NOINDEX | NOFOLLOW == BOTH


@pytest.mark.parametrize("part", PARTS)
def test_a_tag_of_one_part_alone_however_long_is_read(part):
    long = f"unavailable_after: {part * (MAX_TAG_TEXT // len(part))}"[:MAX_TAG_TEXT]
    assert isinstance(of_page([long], (), US, NOW), Tags)
    assert isinstance(of_page((), [("robots", long)], US, NOW), Tags)
