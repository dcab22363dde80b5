"""Groups: SPEC G, RFC 9309 §2.2.1."""

import pytest

from scrapy_rep.protocol import Field, Reason, RobotsTxt

URL = "https://example.com"


def allowed(robots, path, *tokens):
    return RobotsTxt.parse(robots.encode()).verdict(URL + path, *tokens).allowed


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
@pytest.mark.parametrize(
    "value",
    ["googlebot", "Googlebot", "GOOGLEBOT", "googlebot/1.2", "googlebot*", "googlebot (x)"],
)
@pytest.mark.parametrize("token", ["googlebot", "GoogleBot"])
def test_what_does_not_belong_to_a_token_is_ignored(value, token):
    assert not allowed(f"user-agent: {value}\ndisallow: /", "/x", token)


@pytest.mark.spec("G-3")
@pytest.mark.parametrize("value", ["googlebo", "googlebots", "a googlebot", "*googlebot", "google"])
def test_tokens_are_equal_or_not(value):
    assert allowed(f"user-agent: {value}\ndisallow: /", "/x", "googlebot")


@pytest.mark.parametrize(
    ("value", "token", "ours"),
    [
        ("bot2", "bot2", True),
        ("bot2/1.0", "bot2", True),
        ("BOT2", "bot2", True),
        ("bot", "bot2", False),
        ("bot2", "bot", True),
        ("bot2", "bot22", False),
        ("my.bot", "my.bot", True),
        ("008", "008", True),
        ("360Spider", "360spider", True),
        ("360Spider", "spider", False),
    ],
)
def test_digits_and_dots_where_the_token_has_them(value, token, ours):
    assert allowed(f"user-agent: {value}\ndisallow: /", "/x", token) is not ours


GROUPS_OF_G4 = ["user-agent: a\ndisallow: /a", "user-agent: *\ndisallow: /x"]


@pytest.mark.spec("G-4")
@pytest.mark.parametrize("groups", [GROUPS_OF_G4, GROUPS_OF_G4[::-1]])
def test_one_group_holds(groups):
    robots = "\n".join(groups)
    assert not allowed(robots, "/a", "a")
    assert allowed(robots, "/x", "a")
    assert allowed(robots, "/a", "b")
    assert not allowed(robots, "/x", "b")
    assert not allowed(robots, "/x")
    assert allowed(GROUPS_OF_G4[0], "/a", "b")


@pytest.mark.spec("G-4")
def test_an_empty_specific_group_shadows_anyone():
    assert allowed("user-agent: *\ndisallow: /\nuser-agent: a", "/x", "a")
    assert allowed("user-agent: a\ndisallow:\nuser-agent: *\ndisallow: /", "/x", "a")


@pytest.mark.spec("G-5")
def test_groups_of_one_token_are_merged():
    robots = (
        "user-agent: googlebot-news\ndisallow: /fish\n"
        "user-agent: *\ndisallow: /carrots\n"
        "user-agent: googlebot-news\ndisallow: /shrimp\n"
    )
    assert not allowed(robots, "/fish", "googlebot-news")
    assert not allowed(robots, "/shrimp", "googlebot-news")
    assert allowed(robots, "/carrots", "googlebot-news")
    assert allowed(robots, "/shrimp", "b")
    assert not allowed(robots, "/carrots", "b")


@pytest.mark.spec("G-5")
def test_a_group_that_names_a_crawler_twice_counts_once():
    robots = RobotsTxt.parse(b"user-agent: a\nuser-agent: A/2\nuser-agent: *\ndisallow: /x")
    assert len(robots.group_for("a").rules) == 1


@pytest.mark.spec("G-5")
def test_a_group_for_a_and_anyone():
    robots = (
        "user-agent: a\nuser-agent: *\ndisallow: /both\nuser-agent: *\ndisallow: /anyone\n"
        "user-agent: a\ndisallow: /only"
    )
    assert [allowed(robots, path, "a") for path in ("/both", "/anyone", "/only")] == [
        False,
        True,
        False,
    ]
    assert [allowed(robots, path, "b") for path in ("/both", "/anyone", "/only")] == [
        False,
        False,
        True,
    ]


@pytest.mark.spec("G-6")
@pytest.mark.parametrize(
    ("tokens", "path"),
    [
        (("googlebot-news",), "/1"),
        (("googlebot",), "/3"),
        (("googlebot-images", "googlebot"), "/3"),
        (("googlebot-news", "googlebot"), "/1"),
        (("storebot-google",), "/2"),
        (("otherbot",), "/2"),
        ((), "/2"),
        (("", "googlebot"), "/3"),
    ],
)
def test_the_most_specific_token(tokens, path):
    robots = (
        "user-agent: googlebot-news\ndisallow: /1\nuser-agent: *\ndisallow: /2\n"
        "user-agent: googlebot\ndisallow: /3"
    )
    assert [p for p in ("/1", "/2", "/3") if not allowed(robots, p, *tokens)] == [path]


@pytest.mark.spec("G-7")
@pytest.mark.parametrize(
    "between",
    ["sitemap: https://example.com/s.xml", "crawl-delay: 5", "x: y", "nonsense", "# x", ""],
)
def test_other_lines_do_not_end_a_run_of_user_agent_lines(between):
    robots = f"user-agent: a\n{between}\nuser-agent: b\ndisallow: /"
    assert not allowed(robots, "/x", "a")
    assert not allowed(robots, "/x", "b")


@pytest.mark.parametrize("rule", ["disallow:", "allow:", "disallow: nonsense"])
def test_a_rule_without_a_path_ends_a_run_of_user_agent_lines(rule):
    robots = f"user-agent: a\n{rule}\nuser-agent: b\ndisallow: /"
    assert allowed(robots, "/x", "a")
    assert not allowed(robots, "/x", "b")


@pytest.mark.spec("G-8")
def test_rules_before_any_user_agent_line_belong_to_nobody():
    robots = RobotsTxt.parse(b"disallow: /a\nuser-agent: *\ndisallow: /b")
    assert robots.verdict(f"{URL}/a", "x").allowed
    assert not robots.verdict(f"{URL}/b", "x").allowed


@pytest.mark.google
@pytest.mark.parametrize(
    ("value", "anyone"),
    [
        ("*", True),
        ("* foo", True),
        ("*\tfoo", True),
        ("*\x0b", True),
        ("*foo", False),
        ("**", False),
    ],
)
def test_star_followed_by_white_space_is_anyone(value, anyone):
    assert allowed(f"user-agent: {value}\ndisallow: /", "/x", "foo") is not anyone


def test_an_empty_user_agent_names_nobody_and_ends_a_group():
    robots = "user-agent: a\ndisallow: /a\nuser-agent:\ndisallow: /b\nuser-agent: *\ndisallow: /c"
    assert allowed(robots, "/b", "a")
    assert allowed(robots, "/b", "")
    assert not allowed(robots, "/c", "")
    assert RobotsTxt.parse(robots.encode()).groups[1].tokens == ()


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


@pytest.mark.google
@pytest.mark.parametrize("field", ["Disallow", "allow", "disallow", "DISALLOW", "Disallow # x"])
def test_a_field_alone_without_colon_is_no_rule(field):
    robots = f"user-agent: a\n{field}\nuser-agent: b\ndisallow: /"
    assert not allowed(robots, "/x", "a")
    assert RobotsTxt.parse(f"user-agent: a\n{field}".encode()).groups[0].rules == ()


@pytest.mark.spec("G-8")
def test_without_any_group_all_lines_belong_to_nobody():
    robots = RobotsTxt.parse(b"Allow: /a\nSitemap: s\nHost: h\n")
    assert robots.verdict(f"{URL}/a", "x").reason is Reason.NO_RULE
    assert robots.groups == ()
