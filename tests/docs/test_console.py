"""What the docs show of the command line and of the log is what comes out."""

import re
import shlex
from importlib.metadata import metadata

import pytest
from scrapy import Request

from scrapy_rep.utils.text import utc_time_text
from tests.crawling.crawl import AS_BY_DEFAULT, ListSpider, crawl
from tests.crawling.web import RULES, answer, robots
from tests.crawling.web import page as page_with
from tests.docs.blocks import (
    ROOT,
    SHELL,
    blocks,
    lines_of,
    logged_by,
    of_kind,
    sections,
    unindented,
)
from tests.waiting import PATIENCE

SETTINGS = (
    "ADDONS = {'scrapy_rep.Addon': 500}\nUSER_AGENT = 'mybot/1.0'\n"
    # A machine that is busy is no site that fails.
    f"REP_TIMEOUT = {PATIENCE}\n"
)
SYMPTOMS = "docs/usage/first-hour.rst"
TIMES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"), "(a moment)"),
    (re.compile(r"just now|\d+ \w+ ago"), "(ago)"),
    (re.compile(r"valid for \d+ \w+"), "(a while)"),
    (re.compile(r"not from the store|from /\S+/robots.sqlite"), "(source)"),
    (re.compile(r"(?m)^/\S+/robots.sqlite"), "(store)"),
]


def timeless(text):
    for pattern, word in TIMES:
        text = pattern.sub(word, text)
    return text.splitlines()


def test_every_literal_block_is_checked_by_a_test():
    assert {block.kind for block in blocks()} == {"python", "console", "shell", "log", "none"}
    assert [block.page for block in blocks() if block.kind == "none"] == [
        "docs/reference/commands.rst",  # the synopsis
        "docs/usage/fleet.rst",  # for redis-cli
    ]


def console():
    for block in of_kind("console"):
        # What people do first is done as they do it.
        first = block.page == SYMPTOMS
        yield pytest.param(block, id=block.page, marks=[pytest.mark.real_process] * first)


@pytest.mark.parametrize("block", list(console()))
def test_commands_of_the_docs_say_what_the_docs_say(block, web, run_scrapy, project, tmp_path):
    project(SETTINGS)
    steps = [step.split("\n", 1) for step in re.split(r"(?m)^\$ ", block.text)[1:]]
    files = {command: text for command, text in steps if command.startswith("cat ")}
    for command, text in files.items():
        (tmp_path / command.removeprefix("cat ")).write_text(text)
    url = web.site(robots(files.get("cat robots.txt", RULES))).url("").rstrip("/")
    for command, expected in steps:
        if command in files:
            continue
        program, *arguments = shlex.split(command.replace("https://example.com", url))
        assert program == "scrapy"
        run = run_scrapy(*arguments, cwd=tmp_path)
        shown = (run.stderr + run.stdout).replace(url, "https://example.com")
        assert timeless(shown.replace("127.0.0.1", "example.com")) == timeless(expected)


@pytest.mark.parametrize("block", of_kind("shell"), ids=lambda block: block.page)
def test_commands_for_the_shell_are_there(block):
    targets = re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text())
    extras = metadata("scrapy-rep").get_all("Provides-Extra")
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        assert line.startswith((*SHELL, "../.venv/bin/scrapy ", ".venv/bin/python -m "))
        if words[0] == "make":
            assert set(words[1:]) <= set(targets)
        elif words[0] == "pip":
            (named,) = re.findall(r"^scrapy-rep(?:\[(\w+)\])?$", words[2])
            assert named in {"", *extras}
        elif words[0] == ".venv/bin/python":
            assert (ROOT / words[2].replace(".", "/") / "__main__.py").exists()
        elif words[0] == "cd":
            assert (ROOT / words[1]).is_dir()


def test_extras_that_the_docs_name_are_there():
    extras = metadata("scrapy-rep").get_all("Provides-Extra")
    for page in {block.page for block in blocks()}:
        for named in re.findall(r"scrapy-rep\[(\w+)\]", (ROOT / page).read_text()):
            assert named in extras


class FollowingSpider(ListSpider):
    def parse(self, response):
        yield Request(response.urljoin("/next"))
        yield {"url": response.url}


async def test_log_lines_of_the_docs_are_logged(web, tmp_path, monkeypatch):
    """Those by symptom have a test of their own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scrapy.cfg").touch()
    calm, failing = web.site(robots(RULES)), web.site(answer(503))
    diary = [web.site(robots("User-agent: *\nContent-Usage: train-ai=n\n")).url("/diary")]
    tagged = [
        web.site(paths={"/page": page_with("<a href=next>", X_Robots_Tag="none")}).url("/page"),
    ]
    slow = [
        web.site(robots("User-agent: *\nCrawl-delay: 29\n"), host=f"127.0.0.{n}") for n in (2, 3)
    ]
    defer, dry = {"REP_DEFER_TIMEOUT": 300}, {"REP_DRY_RUN": True}
    defaults = {**AS_BY_DEFAULT, "REP_STORE": "sqlite:///robots.sqlite", **defer}
    # What drops or refuses most comes first in the summary.
    private = [calm.url("/private/1"), calm.url("/private/2")]
    orders = [
        ([calm.url("/")], {**defaults, "ROBOTSTXT_USER_AGENT": ["mybot-images", "mybot"]}),
        (private, {**defaults, "USER_AGENT": "mybot/1.0"}),
        ([*private, failing.url("/")], {}),
        ([failing.url("/")], {**dry, **defer}),
        ([*private, *(site.url(f"/{n}") for site in slow for n in range(8))], dry),
    ]
    following = [(tagged, {}), (tagged, {**dry, "REP_META_TAGS": "drop"})]
    for action in ("drop", "record", "drop-items"):
        following.append((diary, {"REP_PURPOSES": "ai-training", "REP_USAGE_ACTION": action}))
    runs = [
        await crawl(*urls, settings=settings, spidercls=spider)
        for spider, some in ((ListSpider, orders), (FollowingSpider, following))
        for urls, settings in some
    ]
    logged = logged_by(runs)
    by_symptom = "".join(sections(SYMPTOMS).values())
    for block in of_kind("log"):
        if unindented(block.text) not in by_symptom:
            assert [line for line in lines_of(block) if line not in logged] == []


def test_times_of_commands_are_known_here():
    # Else what is left out of the comparison could be anything.
    assert timeless(utc_time_text(0.0)) == ["(a moment)"]
