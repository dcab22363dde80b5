"""Matching: SPEC M, RFC 9309 §2.2.2."""

import pytest

from scrapy_rep.protocol import Reason, RobotsTxt, Rule, origin_of
from scrapy_rep.protocol.origin import target_of
from tests.protocol import asking


def verdict(rules, path):
    if not path.startswith("http"):
        path = f"https://example.com{path}"
    return asking.verdict(f"user-agent: *\n{rules}".encode(), path, "a")


def matches(pattern, path):
    return not verdict(f"disallow: {pattern}", path).allowed


TABLE_OF_PATTERNS = [
    ("/", ["/", "/a", "/a/b?c"], []),
    ("/*", ["/", "/a", "/a/b?c"], []),
    ("/$", ["/"], ["/a", "/?a"]),
    (
        "/fish",
        [
            "/fish",
            "/fish.html",
            "/fish/salmon.html",
            "/fishheads",
            "/fishheads/yummy.html",
            "/fish.php?id=anything",
        ],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish*",
        [
            "/fish",
            "/fish.html",
            "/fish/salmon.html",
            "/fishheads",
            "/fishheads/yummy.html",
            "/fish.php?id=anything",
        ],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    (
        "/fish/",
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    (
        "/*.php",
        [
            "/index.php",
            "/filename.php",
            "/folder/filename.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/filename.php/",
        ],
        ["/", "/windows.PHP"],
    ),
    (
        "/*.php$",
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5", "/windows.PHP"],
    ),
    ("/fish*.php", ["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP"]),
]


@pytest.mark.spec("M-3")
@pytest.mark.parametrize(
    ("pattern", "path"), [(p, path) for p, yes, _ in TABLE_OF_PATTERNS for path in yes]
)
def test_matches(pattern, path):
    assert matches(pattern, path)


@pytest.mark.spec("M-3")
@pytest.mark.parametrize(
    ("pattern", "path"), [(p, path) for p, _, no in TABLE_OF_PATTERNS for path in no]
)
def test_does_not_match(pattern, path):
    assert not matches(pattern, path)


TABLE_OF_PRECEDENCE = [
    ("https://example.com/page", "/p", "/", True),
    ("https://example.com/folder/page", "/folder", "/folder", True),
    ("https://example.com/page.htm", "/page", "/*.htm", False),
    ("https://example.com/page.php5", "/page", "/*.ph", True),
    ("https://example.com/", "/$", "/", True),
    ("https://example.com/page.htm", "/$", "/", False),
]


@pytest.mark.spec("M-4")
@pytest.mark.parametrize(("url", "allow", "disallow", "allowed"), TABLE_OF_PRECEDENCE)
@pytest.mark.parametrize("order", [1, -1])
def test_the_longest_decides(url, allow, disallow, allowed, order):
    rules = [f"allow: {allow}", f"disallow: {disallow}"][::order]
    assert verdict("\n".join(rules), url).allowed is allowed


@pytest.mark.spec("M-1")
def test_a_path_is_case_sensitive_and_relative_to_the_root():
    assert matches("/a", "/a")
    assert not matches("/A", "/a")
    assert not matches("/a", "/b/a")


@pytest.mark.spec("M-1")
@pytest.mark.parametrize("rule", ["disallow:", "allow:", "disallow: # /"])
def test_a_rule_without_a_path_is_ignored(rule):
    assert verdict(rule, "/x").reason is Reason.NO_RULE
    assert not verdict(f"disallow: /\n{rule}", "/x").allowed


@pytest.mark.google
@pytest.mark.parametrize(
    "pattern",
    ["x", "fish", "$", "?x", "http://example.com/x", "%2Fx", ".", "\\x", "%2Ax", " x"],
)
def test_a_rule_that_starts_with_neither_slash_nor_star_never_matches(pattern):
    assert not any(matches(pattern, path) for path in ("/", "/x", "/fish", "/?x", "x"))


@pytest.mark.spec("M-2")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/é", "/%C3%A9"),
        ("/%C3%A9", "/é"),
        ("/%c3%a9", "/é"),
        ("/é", "/é"),
        ("/ツ", "/%E3%83%84"),
        ("/%7Ejoe/", "/~joe/"),
        ("/~joe/", "/%7ejoe/"),
        ("/%61", "/a"),
        ("/a%2fb", "/a%2Fb"),
        ("/a b", "/a%20b"),
        ("/a{b}", "/a%7Bb%7D"),
        ("/a|b", "/a%7cb"),
        ("/100%", "/100%"),
        ("/%zz", "/%zz"),
    ],
)
def test_both_spellings_match(pattern, path):
    assert matches(pattern, path)


@pytest.mark.spec("M-2")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/a%2Fb", "/a/b"),
        ("/a/b", "/a%2Fb"),
        ("/a%3Fb", "/a?b"),
        ("/a?b", "/a%3Fb"),
        ("/a%26b", "/a&b"),
        ("/é", "/%E9"),
        ("/%25", "/%"),
    ],
)
def test_an_escape_of_a_reserved_character_is_another(pattern, path):
    assert not matches(pattern, path)


@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/a?b=%3A%2f%3F%40", "/a?b=:/?@"),
        ("/a?b=:/?@", "/a?b=%3a%2F%3f%40"),
        ("/a%2Fb?c=/", "/a%2Fb?c=%2F"),
        ("/a?b=%2Fc$", "/a?b=/c"),
        ("/a?*%2Fb", "/a?b=/b"),
        ("/*?b=%2F", "/a?b=/"),
        ("/*%2F", "/a?u=b%2Fc"),
        ("/*%2F", "/a?u=b/c"),
        ("/*%2F", "/a%2Fb"),
        ("/*/b", "/a?u=%2Fb"),
        ("*%2Fb$", "/a?u=/b"),
        ("/*%2Fb*%2Fc", "/%2Fb?%2Fc"),
        ("/*%2Fb*%2Fc", "/%2Fb/?/c"),
        ("/*%2Fb*%2Fc", "/?/b/c"),
        ("/*%2Fb*c*%2Fd", "/%2Fb?c/d"),
        ("/*%2Fb*c*%2Fd", "/%2Fbc?/d"),
        ("/*%3Fb", "/a??b"),
        ("/*%2F?a=%2F", "/b%2F?a=/"),
        ("/*%2F?a=%2F", "/b?/?a=/"),
        ("/*%2Fa*", "/?%2Fa"),
        ("/a%2Fb*%2F", "/a%2Fb?%2F"),
    ],
)
def test_in_a_query_an_escape_of_data_is_its_character(pattern, path):
    assert matches(pattern, path)


@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/a%3Fb=%2F", "/a%3Fb=/"),
        ("/a%2Fb?c", "/a/b?c"),
        ("/*%2F", "/a/b?c"),
        ("/*%3Fb", "/a?b"),
        ("/*%2F", "/a?b%252F"),
        ("/*%2Fb*%2Fc", "/?/b%2Fb"),
        ("/*%2Fb*%2Fc", "/b/b?%2Fc"),
        ("*%2Fb$", "/a?u=/bc"),
        ("*%2Fb$", "/a/b"),
        ("/a%2F*%2F", "/a/?%2F"),
        ("/a?b=%26%3D%2B%25", "/a?b=&=+%"),
    ],
)
def test_elsewhere_it_is_not(pattern, path):
    assert not matches(pattern, path)


@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize("path", ["/a%2F%2Fb", "/?%2F%2Fb", "/?//b", "/?%2f/b"])
def test_a_rule_has_the_same_length_in_path_and_query(path):
    assert not verdict("disallow: /*%2F%2Fb\nallow: /*b*", path).allowed
    assert not verdict("disallow: /*%2F%2Fb\nallow: *******b", path).allowed
    assert verdict("disallow: /*%2F%2Fb\nallow: *********b", path).allowed
    found = verdict("allow: /*%2F%2Fb\ndisallow: /*b", path)
    assert (found.allowed, str(found.rule), found.line) == (True, "Allow: /*%2F%2Fb", 2)


RFC_5_1 = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
RFC_5_2 = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"


@pytest.mark.rfc9309("5")
@pytest.mark.parametrize(
    ("robots", "token", "path", "allowed"),
    [
        (RFC_5_1, "anybot", "/a.gif", False),
        (RFC_5_1, "anybot", "/a.gif?x", True),
        (RFC_5_1, "anybot", "/example/", False),
        (RFC_5_1, "anybot", "/publications/", True),
        (RFC_5_1, "anybot", "/other", True),
        (RFC_5_1, "foobot", "/", False),
        (RFC_5_1, "foobot", "/publications/", False),
        (RFC_5_1, "foobot", "/example/page.html", True),
        (RFC_5_1, "foobot", "/example/allowed.gif", True),
        (RFC_5_1, "barbot", "/example/page.html", False),
        (RFC_5_1, "bazbot", "/example/page.html", False),
        (RFC_5_1, "bazbot", "/a.gif", True),
        (RFC_5_1, "quxbot", "/example/", True),
        (RFC_5_1, "quxbot", "/a.gif", True),
        (RFC_5_2, "foobot", "/example/page/", True),
        (RFC_5_2, "foobot", "/example/page/disallowed.gif", False),
    ],
)
def test_examples(robots, token, path, allowed):
    url = f"https://example.com{path}"
    assert asking.verdict(robots.encode(), url, token).allowed is allowed


@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
    ],
)
def test_percent_encoding(pattern, path):
    assert matches(pattern, path)


@pytest.mark.rfc9309("2.2.3")
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/path/foo-%24", "/path/foo-%24"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2a.html"),
    ],
)
def test_special_characters(pattern, path):
    assert matches(pattern, path)
    assert not matches("/path/file-with-a-%2A.html", "/path/file-with-a-b.html")


@pytest.mark.parametrize(
    ("pattern", "path", "matching"),
    [
        ("/a$b", "/a$b", True),
        ("/a$b", "/a%24b", True),
        ("/a$b", "/a", False),
        ("/a$$", "/a$", True),
        ("/a$$", "/a", False),
        ("/a$*", "/a$b", True),
        ("/a$*", "/a", False),
        ("/a*$", "/abc", True),
        ("/a**b", "/axb", True),
        ("/*a*b*$", "/xaxbx", True),
        ("/*a*a$", "/xa", False),
        ("/*a*a$", "/aa", True),
        ("/*ab*bc", "/abc", False),
        ("/a*a", "/a", False),
        ("*", "/", True),
        ("*$", "/x", True),
        ("*x", "/ax", True),
        ("*/x$", "/a/x", True),
    ],
)
def test_operators_in_every_position(pattern, path, matching):
    assert matches(pattern, path) is matching


@pytest.mark.google
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/allowed-slash/index.html", True),
        ("/allowed-slash/", True),
        ("/allowed-slash/index.htm", False),
        ("/index.html", True),
        ("/", True),
        ("/index.htm", False),
        ("/x/", False),
        ("/wild/a/", True),
        ("/end/", True),
        ("/end/x", False),
        ("/longer/", True),
        ("/query/", True),
        ("/query/?q", False),
        ("/query/index.html?q", True),
        ("/star/", True),
        ("/behind/", False),
        ("/other/", False),
    ],
)
def test_index_files_allow_their_directory(path, allowed):
    rules = (
        "disallow: /\nallow: /allowed-slash/index.html\nallow: /index.html\n"
        "allow: /wild/*/index.htm\nallow: *index.html$x\n"
        "allow: /end/index.html$\nallow: /longer/index.htmx\nallow: /query/index.html?q\n"
        "allow: /star/index.htm*\nallow: /behind/index.html?q=/x\nallow: /other/index.ht\n"
    )
    assert verdict(rules, path).allowed is allowed


@pytest.mark.google
def test_index_files_do_not_widen_a_disallow_and_can_be_switched_off():
    body = b"user-agent: *\ndisallow: /a/index.html\ndisallow: /b\nallow: /b/index.html"
    assert asking.verdict(body, "http://h/a/", "a").allowed
    assert asking.verdict(body, "http://h/b/", "a").allowed
    assert not asking.verdict(body, "http://h/b/", "a", index_files=False).allowed


@pytest.mark.spec("M-4")
def test_longest_of_many():
    rules = "\n".join(
        [
            "disallow: /a",
            "allow: /a/b",
            "disallow: /a/b/c",
            "disallow: /a/b/d*****",
            "allow: /a/b/dxy",
            "allow: /a/b/e$",
            "disallow: /a/b/e***",
            "disallow: /a/*x",
            "allow: /q",
        ]
    )
    expected = {"/a": 2, "/a/b": 3, "/a/b/c": 4, "/a/b/cc": 4, "/a/b/bb": 3, "/a/b/dxyz": 5}
    expected |= {"/a/b/e": 8, "/a/z": 2, "/a/bx": 9, "/qq": 10, "/b": None, "/": None, "/a/b/d": 5}
    assert {path: verdict(rules, path).line for path in expected} == expected | {"/a/bx": 9}


def test_of_equal_rules_the_first_line_is_named():
    assert verdict("disallow: /a\ndisallow: /a", "/a").line == 2
    assert verdict("disallow: /a\nallow: /a\nallow: /a", "/a").line == 3


def test_verdict_names_rule_and_line():
    found = verdict("disallow: /é*", "/%C3%A9")
    assert found.rule == Rule(allow=False, pattern="/%C3%A9*", raw="/é*", line=2)
    assert str(found.rule) == "Disallow: /é*"
    assert found.reason is Reason.RULE
    nothing = verdict("allow: /b", "/a")
    assert (nothing.allowed, nothing.reason, nothing.rule, nothing.line) == (
        True,
        Reason.NO_RULE,
        None,
        None,
    )
    escape = verdict("allow: /\x1b[0m", "http://h/\x1b[0m")
    assert str(escape.rule) == "Allow: /%1B[0m"


def test_rules_know_their_size():
    body = b"user-agent: *\n" + b"".join(
        b"disallow: /%d*x\ndisallow: /%d$\n" % (i, i) for i in range(99)
    )
    rules = RobotsTxt.parse(body).rules_for("a")
    assert RobotsTxt.parse(b"").rules_for("a").nbytes < 2_000 < rules.nbytes < 100_000
    size = rules.nbytes
    assert {rules.verdict_for(target_of("http://h/5x")).line for _ in range(asking.TIMES)} == {12}
    assert size / 1.5 < rules.nbytes < size
    assert origin_of("http://h/").robotstxt_url == "http://h/robots.txt"


@pytest.mark.spec("M-4")
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("path", ["/a", "/ab"])
def test_equal_length_by_stars_and_end(order, path):
    rules = ["disallow: /a**", "allow: /a*$"][::order]
    assert verdict("\n".join(rules), path).allowed
