"""Groups: SPEC G, RFC 9309 §2.2.1."""

import pytest

from scrapy_rep.protocol import Field, RobotsTxt


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
