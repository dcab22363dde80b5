"""What may become of a URL between the verdict and the site; test_wire has what handlers send."""

import pytest

from scrapy_rep.decision.spellings import other_spellings, verdict_of_rules, without_dot_segments
from scrapy_rep.protocol import Reason, RobotsTxt, target_of
from scrapy_rep.utils.requests import stripped_url


def spellings(url):
    return other_spellings(url, target_of(url))


@pytest.mark.rfc3986("5.2.4")
@pytest.mark.parametrize(
    ("target", "without"),
    [
        ("/", "/"),
        ("/a/../b", "/b"),
        ("/a/./b", "/a/b"),
        ("/../a", "/a"),
        ("/a/..", "/"),
        ("/a/b/..", "/a/"),
        ("/a/../../../b/", "/b/"),
        ("/a/..b/.c/...", "/a/..b/.c/..."),
        ("/a//../b", "/a/b"),
    ],
)
def test_dot_segments(target, without):
    assert without_dot_segments(target) == without


def test_blanks_as_url_parsers_read_them():
    assert stripped_url(" \t\x00ht\ntp://a/p\tq r\r\n ") == "http://a/pq r"


@pytest.mark.parametrize(
    ("url", "some"),
    [
        ("http://a/b;?c", {"/b?c"}),
        ("http://a/b;c?d", {"/b?d"}),
        ("http://a/b;c/d?", {"/b/d", "/b/d?", "/b;c/d"}),
        ("http://a/b%2F%3Dc//d", {"/b/=c/d", "/b/=c//d", "/b%2F=c//d"}),
        ("http://a/b%5Cc", {"/b/c"}),
        ("http://a/b/%2E./c", {"/c"}),
        ("http://a/b/.", {"/b/", "/b"}),
        ("ftp://a/b%2Fc;d?e", {"/b/c", "/b/c?e", "/b/c;d?e"}),
        # As curl_cffi sends it.
        ("http://a/a%2F%zz", {"/a%252F%25zz"}),
        ("http://a/?a=%2F%zz", {"/?a=%252F%25zz"}),
        # A server may end the target at a blank (RFC 9112 §3).
        *((f"http://a/b{blank}c", {"/b"}) for blank in (" ", "\t", "\v", "\f", "\r", "\n", "  ")),
    ],
)
def test_spellings_in_which_a_url_may_be_sent_or_read(url, some):
    assert spellings(url) >= some


def test_a_url_without_other_spellings():
    assert spellings("http://a/b/c=d?e=f%20") == set()
    assert "/a%252F" not in spellings("http://a.example/a%2F")
    assert "/a" not in spellings("http://a.example/a%20b")


def test_a_host_name_that_is_another_one_in_another_version_of_idna():
    with pytest.raises(ValueError, match="IDNA"):
        spellings("http://straße.example/")
    assert spellings("http://a.example/straße?ß") == set()


def test_a_url_of_very_many_spellings_is_disallowed():
    rules = RobotsTxt.parse(b"User-agent: *\nDisallow: /b").rules_for("mybot")
    most, more = "http://h/%2F;a\\??", "http://h///\t \\%zz?"
    assert [len(spellings(url)) for url in (most, more)] == [32, 33]
    assert verdict_of_rules(rules, most).reason is Reason.NO_RULE
    assert verdict_of_rules(rules, more).reason is Reason.TOO_COSTLY
