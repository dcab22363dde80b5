"""Scrapy's commands at which somebody waits for the answer."""

import re

import pytest

from tests.crawling.web import answer, robots
from tests.waiting import PATIENCE

SETTINGS = (
    "ADDONS = {'scrapy_rep.Addon': 500}\nSPIDER_MODULES = ['spiders']\n"
    f"USER_AGENT = 'mybot/1.0'\nREP_TIMEOUT = {PATIENCE}\n"
)
SPIDER = (
    "import scrapy\n\nclass Spider(scrapy.Spider):\n    name = 'a'\n\n"
    "    def parse(self, response):\n"
    "        '''\n        @url %s\n        @returns items 0 0\n        '''\n"
)


@pytest.fixture
def scrapy(run_scrapy, project, tmp_path):
    """Run a command of Scrapy in a project; return what it said on standard error."""

    def run(*arguments, url):
        project(SETTINGS)
        (tmp_path / "spiders.py").write_text(SPIDER % url)
        return run_scrapy(*arguments, cwd=tmp_path).stderr

    return run


# Were these deferred, they would not end in PATIENCE.
@pytest.mark.parametrize(
    "command",
    [["fetch"], ["view"], ["shell", "-c", "response"], ["parse", "--spider=a"], ["check"]],
    ids=lambda command: command[0],
)
def test_who_waits_is_told_at_once_why_nothing_comes(command, web, scrapy):
    site = web.site(answer(503))
    url = site.url("/")
    target = [] if command == ["check"] else ["--nolog", url]
    lines = scrapy(*command, *target, url=url).splitlines()
    (line,) = [line for line in lines if line.startswith("Dropped: ")]
    assert line.startswith(
        f"Dropped: <GET {url}>: robots.txt is unreachable: status 503, next try at "
    )
    assert line.endswith(
        f"({site.url('/robots.txt')}). To ignore robots.txt: -s ROBOTSTXT_OBEY=False"
    )


@pytest.mark.real_process
def test_the_shell_names_the_rule_and_its_line(web, scrapy):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    url = site.url("/private")
    said = scrapy("shell", "--nolog", "-c", "response", url, url=url)
    assert f"<GET {url}>: Disallow: /private (line 2 of {site.url('/robots.txt')})." in said


def names(listing):
    return re.findall(r"(?m)^  (\w+)  ", listing)


@pytest.mark.real_process
def test_outside_of_a_project_scrapy_has_none_but_its_own_commands_and_ours(run_scrapy, tmp_path):
    listed = names(run_scrapy(cwd=tmp_path).stdout)
    assert {"fetch", "robots", "shell", "view"} <= set(listed)
    assert not {"check", "crawl", "list", "parse"} & set(listed)
    for command in ("check", "parse"):
        done = run_scrapy(command, cwd=tmp_path)
        assert done.returncode == 2
        assert "only available from within a project" in done.stdout
        assert "Traceback" not in done.stderr


def test_the_first_line_names_the_file_of_the_store(web, scrapy, run_scrapy, tmp_path):
    url, where = web.site(robots("")).url("/"), tmp_path / ".scrapy" / "robots.sqlite"
    outside = tmp_path / "outside"
    outside.mkdir()
    said = run_scrapy("fetch", "-s", 'ADDONS={"scrapy_rep.Addon": 500}', url, cwd=outside).stderr
    here = (
        f"{outside / '.scrapy' / 'robots.sqlite'} (outside of a project, in the current directory)"
    )
    assert f"records in {here}, REP_" in said
    assert f"records in {where}, REP_" in scrapy("fetch", url, url=url)
