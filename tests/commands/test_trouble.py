"""What goes wrong while a command runs, and how it is told."""

import signal
import sys

import pytest

from tests.commands.started import started
from tests.crawling.web import HANGS, robots
from tests.waiting import PATIENCE, wait_until

ENDED = "the crawl ended before there was a result\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize(
    "arguments", [["check", "{0}/a", "{0}/b", "{1}/"], ["explain", "{0}/"], ["lint", "{0}/"]]
)
@pytest.mark.real_process
def test_a_crawl_that_is_ended_has_no_answer(web, tmp_path, arguments):
    sites = [web.site(HANGS), web.site(HANGS)]
    arguments = [each.format(*(site.url("") for site in sites)) for each in arguments]
    with started(*arguments, cwd=tmp_path) as process:
        wait_until(lambda: sites[0].robots_requests)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", ENDED)
    assert process.returncode == 2


@pytest.mark.real_process
def test_what_the_output_has_no_characters_for_is_escaped(robots_command, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    (tmp_path / "robots.txt").write_text("User-agent: *\nDisallow: /ü\n", encoding="utf-8")
    for command in ("check", "explain"):
        run = robots_command(command, "--file", "robots.txt", "http://a.example/ö")
        assert (run.status, run.err) == (0, "")
        assert "http://a.example/\\xf6" in run.out
    run = robots_command("lint", "robots.txt")
    assert (run.status, run.err) == (0, "")
    assert "Disallow: /\\xfc" in run.out


@pytest.mark.parametrize("command", ["check", "explain", "lint"])
def test_without_the_middleware_nobody_answers(robots_command, command):
    off = ["-s", 'ADDONS={"scrapy_rep.Addon": null}', "-s", "REP_STORE=sqlite:///s.sqlite"]
    run = robots_command(*off, *command.split(), "http://a.example/")
    assert run.status == 2
    assert "no scrapy_rep.RobotsTxtMiddleware: is it None in DOWNLOADER_MIDDLEWARES, or " in run.err


@pytest.mark.parametrize("command", ["check", "explain", "plan"])
def test_a_store_that_cannot_be_used_is_told(robots_command, web, tmp_path, command):
    site = web.site(robots())
    (tmp_path / "s.sqlite").mkdir()
    run = robots_command("-s", f"REP_STORE=sqlite:///{tmp_path}/s.sqlite", command, site.url("/a"))
    assert run.status == 0, run.err
    assert "s.sqlite can't be used, records of robots.txt are kept in memory: " in run.err
