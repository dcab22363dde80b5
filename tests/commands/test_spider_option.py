"""``--spider``: the answer of a command is that for the spider, not for the project."""

import pytest

from tests.crawling.web import answer, robots

RULES = "User-agent: mybot\nDisallow: /\n\nUser-agent: otherbot\nCrawl-delay: 5\nContent-Usage: train-ai=n\n"
SPIDERS = """
import scrapy

class Settings(scrapy.Spider):
    name = "settings"
    custom_settings = {"USER_AGENT": "mybot/1.0", "LOG_LEVEL": "DEBUG", "REP_STORE": "memory://"}

    def __init__(self, category):
        raise ZeroDivisionError

    @classmethod
    def from_crawler(cls, crawler):
        raise ZeroDivisionError

class Attributes(scrapy.Spider):
    name = "attributes"
    user_agent = "otherbot/1.0"
    robotstxt_purposes = ["ai-training"]
"""


@pytest.fixture
def spiders(project, tmp_path):
    project(
        "SPIDER_MODULES = ['spiders']\nUSER_AGENT = 'crawler'\nADDONS = {'scrapy_rep.Addon': 500}\n"
    )
    (tmp_path / "spiders.py").write_text(SPIDERS)


@pytest.mark.parametrize(
    ("spider", "status", "begins", "token"),
    [
        ([], 0, "allowed     ", "crawler"),
        (["--spider", "settings"], 1, "disallowed  ", "mybot"),
        (["--spider=attributes"], 0, "allowed     ", "otherbot"),
        (["--spider", "settings", "--agent", "otherbot"], 0, "allowed     ", "otherbot"),
    ],
)
def test_check_names_the_agent_that_it_is_for(
    web, robots_command, spiders, tmp_path, spider, status, begins, token
):
    site = web.site(robots(RULES))
    (tmp_path / "robots.txt").write_text(RULES)
    for source in ([], ["--file", "robots.txt"]):
        run = robots_command("check", *spider, *source, site.url("/"))
        assert (run.status, run.err) == (status, "")
        (line,) = run.lines
        assert line.startswith(begins)
        assert f", as {token}" in line
        told = robots_command("check", "--json", *spider, *source, site.url("/")).json
        assert told["tokens"] == [token]
    run = robots_command("explain", *spider, site.url("/"))
    assert run.status == status
    assert f"  {token}" in run.lines


def test_plan_has_delay_and_purposes_of_the_spider(web, robots_command, spiders):
    site, missing = web.site(robots(RULES)), web.site(answer(404), host="127.0.0.2")
    urls = [site.url("/1"), site.url("/2"), missing.url("/")]
    run = robots_command("plan", "--spider", "attributes", *urls)
    assert run.lines[0] == "as otherbot"
    assert "use refused          2" in run.lines
    assert "at least           5 s  127.0.0.1: 2 pages, up to 5 s apart (robots.txt)" in run.lines


def test_a_spider_that_is_not_there_is_told(robots_command, spiders):
    run = robots_command("check", "--spider", "setting", "https://a.example/")
    assert run.status == 2
    assert "there is no spider 'setting' in this project\n" in run.err
