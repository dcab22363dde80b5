"""Groups: SPEC G, RFC 9309 §2.2.1."""

import pytest

from scrapy_rep.protocol import Field, Reason, RobotsTxt

URL = "https://example.com"


def allowed(robots, path, *tokens):
    return RobotsTxt.parse(robots.encode()).verdict(URL + path, *tokens).allowed


NEWS = (
    "user-agent: googlebot-news\ndisallow: /f\nuser-agent: *\ndisallow: /c\n"
    "user-agent: googlebot-news\ndisallow: /s\nuser-agent: googlebot\ndisallow: /g\n"
)
TWO = "user-agent: a\ndisallow: /a\nuser-agent: *\ndisallow: /x"
TWO_BACK = "user-agent: *\ndisallow: /x\nuser-agent: a\ndisallow: /a"
SHARED = (
    "user-agent: a\nuser-agent: *\ndisallow: /s\nuser-agent: *\ndisallow: /x\n"
    "user-agent: a\ndisallow: /a"
)
EMPTY = "user-agent: a\ndisallow: /a\nuser-agent:\ndisallow: /b\nuser-agent: *\ndisallow: /c"


@pytest.mark.spec("G-4", "G-5", "G-6", "G-8")
@pytest.mark.parametrize(
    ("robots", "tokens", "disallowed"),
    [
        # One group holds (G-4), whatever the order.
        (TWO, ("a",), "a"),
        (TWO_BACK, ("a",), "a"),
        (TWO, ("b",), "x"),
        (TWO_BACK, ("b",), "x"),
        (TWO, (), "x"),
        ("user-agent: a\ndisallow: /a", ("b",), ""),
        ("user-agent: *\ndisallow: /x\nuser-agent: a", ("a",), ""),
        ("user-agent: a\ndisallow:\nuser-agent: *\ndisallow: /x", ("a",), ""),
        # Groups of one token are merged, and never with those of anyone (G-5).
        (NEWS, ("googlebot-news",), "fs"),
        (SHARED, ("a",), "as"),
        (SHARED, ("b",), "sx"),
        # The most specific token (G-6).
        (NEWS, ("googlebot",), "g"),
        (NEWS, ("googlebot-images", "googlebot"), "g"),
        (NEWS, ("googlebot-news", "googlebot"), "fs"),
        (NEWS, ("storebot-google",), "c"),
        (NEWS, ("otherbot",), "c"),
        (NEWS, (), "c"),
        (NEWS, ("", "googlebot"), "g"),
        # Rules before any name are nobody's (G-8).
        ("disallow: /a\nuser-agent: *\ndisallow: /b", ("x",), "b"),
        # An empty name is nobody, and ends a group.
        (EMPTY, ("a",), "a"),
        (EMPTY, ("",), "c"),
    ],
)
def test_what_a_crawler_may_not_fetch(robots, tokens, disallowed):
    found = [letter for letter in "abcfgsx" if not allowed(robots, f"/{letter}", *tokens)]
    assert "".join(found) == disallowed


@pytest.mark.spec("G-1")
def test_a_user_agent_line_after_a_rule_starts_another_group():
    robots = RobotsTxt.parse(b"user-agent: a\nuser-agent: b\ndisallow: /c\nuser-agent: d\n")
    assert [group.tokens for group in robots.groups] == [("a", "b"), ("d",)]


@pytest.mark.spec("G-2")
def test_four_groups():
    robots = RobotsTxt.parse(
        b"user-agent: a\ndisallow: /c\n\nuser-agent: b\ndisallow: /d\n\n"
        b"user-agent: e\nuser-agent: f\ndisallow: /g\n\nuser-agent: h\n"
    )
    assert [(group.tokens, [str(rule) for rule in group.rules]) for group in robots.groups] == [
        (("a",), ["Disallow: /c"]),
        (("b",), ["Disallow: /d"]),
        (("e", "f"), ["Disallow: /g"]),
        (("h",), []),
    ]
    assert robots.verdict(f"{URL}/c", "h").allowed
    assert robots.verdict("https://a.example/", "h").reason is Reason.NO_RULE


@pytest.mark.spec("G-3")
@pytest.mark.google
@pytest.mark.parametrize(
    ("values", "token", "ours"),
    [
        (["googlebot", "Googlebot", "GOOGLEBOT", "googlebot/1.2"], "googlebot", True),
        (["googlebot*", "googlebot (x)", "googlebot"], "GoogleBot", True),
        (["googlebo", "googlebots", "a googlebot", "*googlebot", "google"], "googlebot", False),
        (["bot2", "bot2/1.0", "BOT2"], "bot2", True),
        (["bot"], "bot2", False),
        (["bot2"], "bot", True),
        (["bot2"], "bot22", False),
        (["my.bot"], "my.bot", True),
        (["008"], "008", True),
        (["360Spider"], "360spider", True),
        (["360Spider"], "spider", False),
        (["*", "* foo", "*\tfoo", "*\x0b"], "foo", True),
        (["*foo", "**"], "foo", False),
    ],
)
def test_whom_a_value_names(values, token, ours):
    for value in values:
        assert allowed(f"user-agent: {value}\ndisallow: /", "/x", token) is not ours


@pytest.mark.spec("G-5")
def test_a_group_that_names_a_crawler_twice_counts_once():
    robots = RobotsTxt.parse(b"user-agent: a\nuser-agent: A/2\nuser-agent: *\ndisallow: /x")
    assert len(robots.group_for("a").rules) == 1


@pytest.mark.spec("G-7")
@pytest.mark.parametrize(
    ("between", "is_one"),
    [
        ("sitemap: https://example.com/s.xml", True),
        ("crawl-delay: 5", True),
        ("x: y", True),
        ("nonsense", True),
        ("# x", True),
        ("", True),
        ("disallow:", False),
        ("allow:", False),
        ("disallow: nonsense", False),
        # A field alone, without a colon, is no rule.
        ("Disallow", True),
        ("allow", True),
        ("DISALLOW", True),
        ("Disallow # x", True),
    ],
)
def test_which_lines_end_a_run_of_user_agent_lines(between, is_one):
    robots = f"user-agent: a\n{between}\nuser-agent: b\ndisallow: /"
    assert allowed(robots, "/x", "a") is not is_one
    assert not allowed(robots, "/x", "b")


def test_an_empty_user_agent_has_no_tokens():
    assert RobotsTxt.parse(EMPTY.encode()).groups[1].tokens == ()


@pytest.mark.spec("L-6")
def test_sitemaps_are_bound_to_no_group_and_keep_their_case():
    robots = RobotsTxt.parse(
        "sitemap: https://example.com/A.xml\nuser-agent: a\nSitemap: http://other.example/ä b\n"
        "disallow: /\nsite-map: x".encode()
    )
    assert robots.sitemaps == ["https://example.com/A.xml", "http://other.example/ä b", "x"]
    assert robots.group_for("a").fields == ()


def test_records_are_kept_with_their_group_and_line():
    robots = RobotsTxt.parse(
        b"host: example.com\nuser-agent: a\nCrawl-Delay: 10\ndisallow: /x\n\nRequest-rate: 1/5\n"
        b"user-agent: *\nuser-agent: a\nfoo: \xff\ncrawl-delay 3\n"
    )
    assert robots.groups[0].fields == (
        Field("crawl-delay", "10", 3),
        Field("request-rate", "1/5", 6),
    )
    merged = robots.group_for("a")
    assert merged.fields == (
        *robots.groups[0].fields,
        Field("foo", "\\xff", 9),
        Field("crawl-delay", "3", 10),
    )
    assert merged.tokens == ("a", "*")
    assert [agent.line for agent in merged.agents] == [2, 7, 8]
    assert robots.group_for("b") == robots.groups[1]
    assert RobotsTxt.parse(b"").group_for("b") is None


def test_rules_for_the_same_tokens_are_the_same():
    robots = RobotsTxt.parse(b"user-agent: a\ndisallow: /")
    assert robots.rules_for("a") is robots.rules_for("a")
    assert robots.rules_for("a") is not robots.rules_for("b")


@pytest.mark.spec("G-8")
def test_without_any_group_all_lines_belong_to_nobody():
    robots = RobotsTxt.parse(b"Allow: /a\nSitemap: s\nHost: h\n")
    assert robots.verdict(f"{URL}/a", "x").reason is Reason.NO_RULE
    assert robots.groups == ()
