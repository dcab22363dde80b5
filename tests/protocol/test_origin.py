"""Where a robots.txt holds: SPEC S, RFC 9309 §2.3."""

import pytest

from scrapy_rep.protocol import origin_of, target_of
from scrapy_rep.protocol.origin import absolute_url, split_url

SAME_ORIGIN = [
    ("S1_default_port_http", "http://example.com:80/a", "http://example.com/"),
    ("S1_default_port_https", "https://example.com:443/a", "https://example.com/"),
    ("S1_scheme_case", "HTTP://example.com/a", "http://example.com/b"),
    ("S1_idn", "http://www.exämple.com/", "http://www.xn--exmple-cua.com/"),
    ("S1_userinfo", "http://user:pa@ss@example.com/", "http://example.com/"),
    ("S2_folder", "https://example.com/robots.txt", "https://example.com/folder/file"),
    ("S7_port", "https://example.com:443/robots.txt", "https://example.com/"),
    ("ours_empty_port", "http://example.com:/", "http://example.com/"),
    ("ours_ipv6", "http://[0:0:0::1]/", "http://[::1]:80/"),
]
OTHER_ORIGIN = [
    ("S2_subdomain", "https://example.com/robots.txt", "https://other.example.com/"),
    ("S2_scheme", "https://example.com/robots.txt", "http://example.com/"),
    ("S2_port", "https://example.com/robots.txt", "https://example.com:8181/"),
    ("S3_parent", "https://www.example.com/robots.txt", "https://example.com/"),
    ("S1_idn", "https://www.exämple.com/robots.txt", "https://www.example.com/"),
    ("S5_ftp", "ftp://example.com/robots.txt", "https://example.com/"),
    ("S6_address", "https://212.96.82.21/robots.txt", "https://example.com/"),
    ("ours_trailing_dot", "http://example.com/robots.txt", "http://example.com./"),
]


@pytest.mark.spec("S-1", "S-2", "S-3", "S-4", "S-5", "S-6", "S-7")
@pytest.mark.parametrize(
    ("robots", "url", "holds"),
    [
        *(pytest.param(*urls, True, id=name) for name, *urls in SAME_ORIGIN),
        *(pytest.param(*urls, False, id=f"not_{name}") for name, *urls in OTHER_ORIGIN),
    ],
)
def test_where_it_holds(robots, url, holds):
    assert (origin_of(robots) == origin_of(url)) is holds


@pytest.mark.spec("S-8")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com:8181/x", "https://example.com:8181/robots.txt"),
        ("https://example.com:443/x", "https://example.com/robots.txt"),
        ("http://[2001:DB8::0:1]:81/x", "http://[2001:db8::1]:81/robots.txt"),
        ("ftp://u:p@example.com/x", "ftp://example.com/robots.txt"),
        ("https://www.exämple.com/x", "https://www.xn--exmple-cua.com/robots.txt"),
    ],
)
def test_robotstxt_url(url, expected):
    assert origin_of(url).robotstxt_url == expected
    assert split_url(url) == (origin_of(url), target_of(url))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://host?x/y", "host"),
        ("http://host/@evil.com/", "host"),
        ("http://host/?http://evil.com/", "host"),
        ("http://a@b@host/", "host"),
        ("http://a_b.example/", "a_b.example"),
        (f"http://{'u' * 400}@host/", "host"),
    ],
)
def test_host_of_odd_urls(url, host):
    assert origin_of(url).host == host


@pytest.mark.parametrize(
    "url",
    [
        "", "/path", "//example.com/", "example.com/", "mailto:a@example.com", "file:///etc/passwd",
        "gopher://example.com/", "httpx://example.com/", " http://example.com/",
        "ht\ttp://example.com/", "http:/example.com/", "http:example.com/", "http://",
        "http:///path", "http://?x", "http://:80/", "http://user@/", "http://host:port/",
        "http://host:80:80/", "http://host:-1/", "http://host:65536/",
        "http://host:99999999999999999999/", "http://host:٣/", "http://good.com\\@evil.com/",
        "http://good.com\\.evil.com/", "http://ho st/", "http://ho\tst/", "http://ho\nst/",
        "http://ho%73t/", "http://ho<st/", "http://[::1/", "http://[::1]x/", "http://[::1%25eth0]/",
        "http://[zz]/", "http://[]/", "http://::1/", "http://./", "http://..example.com/",
        "http://℀.com/", "http://\ud800.com/", f"http://{'a' * 256}/", f"http://{'ä' * 100}/",
    ],
)  # fmt: skip
def test_no_origin_is_a_value_error(url):
    with pytest.raises(ValueError, match=r"."):
        origin_of(url)


def test_no_message_shows_credentials():
    for url in ("http://user:secret@host:port/", "http://user:secret@[x/", "x://u:secret@h/"):
        with pytest.raises(ValueError, match=r".") as caught:
            origin_of(url)
        assert "secret" not in str(caught.value)


@pytest.mark.spec("M-2")
@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://example.com/a?b#c", "/a?b"),
        ("http://h", "/"),
        ("http://h?x", "/?x"),
        ("http://h/a;b=c?d=e&f", "/a;b=c?d=e&f"),
        ("http://h/a/../b", "/a/../b"),
        ("http://h/a?http://x/#y", "/a?http://x/"),
        ("http://h/%7Ea%2Fb", "/~a%2Fb"),
        ("http://h/a b", "/a%20b"),
        ("http://h/a*b$", "/a%2Ab%24"),
        ("http://h/\ud800", "/%ED%A0%80"),
        ("http://h/a\nb", "/a%0Ab"),
        ("http://h/a#\n", "/a"),
        ("http://u:p@h:80/a", "/a"),
        ("", "/"),
        ("a/b", "/a/b"),
        ("//h/a", "/a"),
        ("::", "/::"),
    ],
)
def test_target_of(url, target):
    assert target_of(url) == target


@pytest.mark.parametrize(
    ("url", "absolute"),
    [
        ("HTTPS://a.example/map.xml", "HTTPS://a.example/map.xml"),
        ("/map.xml", "http://site.example/map.xml"),
        ("//a.example/map.xml", "http://a.example/map.xml"),
        ("file:///etc/passwd", None),
        ("data:,x", None),
        ("http://[bad/", None),
    ],
)
def test_absolute_url(url, absolute):
    assert absolute_url(url, "http://site.example/robots.txt") == absolute
