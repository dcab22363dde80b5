"""Our parser behind Scrapy's interface."""

import pytest
from scrapy.robotstxt import RobotParser as BaseRobotParser

from scrapy_rep import RobotParser


@pytest.mark.parametrize("user_agent", ["mybot", b"mybot", "MyBot/2.1 (+http://my.bot)", "mybot*"])
@pytest.mark.parametrize("url", ["http://a/private/1", b"http://a/private/1"])
def test_allowed(user_agent, url):
    parser = RobotParser.from_crawler(None, b"User-agent: mybot\nDisallow: /private\n")
    assert isinstance(parser, BaseRobotParser)
    assert not parser.allowed(url, user_agent)
    assert parser.allowed("http://a/public", user_agent)
    assert parser.allowed(url, "otherbot")


@pytest.mark.parametrize(
    ("named", "asked", "obeys"),
    [
        ("UnicödeBöt", "UnicödeBöt", True),
        ("UnicödeBöt", "unicödeböt/1.0 (+http://my.bot)", True),
        ("über-bot2", "über-bot2", True),
        ("Jävla-Foobot", "jävla-fanbot", False),
        ("j", "jävla-fanbot", False),
        ("my.bot\N{NO-BREAK SPACE}", "my.bot", True),
    ],
)
def test_a_name_with_other_letters_than_ascii_is_compared_as_a_whole(named, asked, obeys):
    parser = RobotParser.from_crawler(None, f"User-agent: {named}\nDisallow: /\n".encode())
    assert parser.allowed("http://a/", asked) is not obeys


@pytest.mark.spec("M-2")
@pytest.mark.parametrize("path", [b"/\xe4", b"/%e4", b"/\xc3\xa4", b"/%41"])
def test_octets_of_a_url_are_those_of_a_pattern(path):
    parser = RobotParser.from_crawler(None, b"User-agent: *\nDisallow: " + path)
    assert not parser.allowed(b"http://a" + path, "mybot")


def test_any_bytes():
    assert RobotParser.from_crawler(None, bytes(range(256))).allowed(b"http://a/\xff", b"\xff")


@pytest.mark.parametrize(
    ("lines", "delay"),
    [
        ("Crawl-delay: 2.5", 2.5),
        ("Crawl-delay: soon\nCrawl-delay: 4", 4.0),
        ("Disallow: /", None),
    ],
)
def test_crawl_delay(lines, delay):
    parser = RobotParser.from_crawler(None, f"User-agent: mybot\n{lines}\n".encode())
    assert parser.crawl_delay("mybot") == delay
    assert parser.crawl_delay("otherbot") is None
