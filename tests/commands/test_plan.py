"""``scrapy robots plan``, run as people run it, against sites whose requests are counted."""

import os
import re
import signal
import sys
from contextlib import suppress

import pytest

from scrapy_rep.utils.text import describe_duration
from tests.commands.started import started
from tests.crawling.web import HANGS, answer, held, robots
from tests.waiting import wait_until

RULES = (
    "User-agent: *\nDisallow: /private\nCrawl-delay: 2\n\nUser-agent: other\nDisallow: /\n"
    "Content-Usage: ai=n\n"
)


def test_it_counts_and_requests_no_page(web, robots_command, tmp_path):
    site, failing = web.site(robots(RULES), host="127.0.0.1"), web.site(answer(503))
    lines = [site.url(f"/{n}") for n in range(11)]
    lines += [site.url("/private/1"), failing.url("/")]
    text = "\ufeff" + "\r\n".join([*lines, "", "# comment", "example.com/x", "mailto:a@b"])
    (tmp_path / "urls.txt").write_text(text, encoding="utf-8", newline="")
    run = robots_command("plan", "--urls-from", "urls.txt", "--agent", "mybot/1.0")
    assert run.lines == [
        "as mybot",
        "urls                15",
        "allowed             11",
        "disallowed           1",
        "unreachable          1",
        "invalid              2",
        "origins              2",
        "at least          20 s  127.0.0.1: 11 pages, up to 2 s apart (robots.txt)",
        "",
        "Unreachable",
        f"      1 page  {failing.url('')}  status 503",
    ]
    assert run.status == 0
    assert run.err.splitlines() == [
        "example.com/x: not an absolute http, https or ftp URL",
        "mailto:a@b: not an absolute http, https or ftp URL",
    ]
    assert site.targets == failing.targets == []
    assert len(site.robots_requests) == 1


@pytest.mark.parametrize(
    ("settings", "seconds", "source"),
    [
        ([], 2.0, "robots.txt"),
        (["REP_CRAWL_DELAY_MAX=1"], 1.0, "REP_CRAWL_DELAY_MAX"),
        (["REP_CRAWL_DELAY_MAX=0"], 0.0, None),
        (["DOWNLOAD_DELAY=3"], 3.0, "DOWNLOAD_DELAY"),
        (['DOWNLOAD_SLOTS={"127.0.0.1": {"delay": 0.5}}'], 0.5, "DOWNLOAD_SLOTS"),
        (["AUTOTHROTTLE_ENABLED=True"], 2.0, "robots.txt"),
        (["REP_DRY_RUN=True"], 2.0, "robots.txt"),
    ],
)
def test_the_delay_is_that_of_the_crawl(web, robots_command, settings, seconds, source):
    site = web.site(robots(RULES))
    chosen = [part for each in settings for part in ("-s", each)]
    run = robots_command("plan", *chosen, site.url("/1"), site.url("/2"))
    (line,) = [line for line in run.lines if line.startswith("at least ")]
    what = f"  127.0.0.1: 2 pages, up to {seconds:g} s apart ({source})" if source else ""
    assert line == f"at least    {describe_duration(seconds):>10}{what}"


def test_it_fails_above_a_limit(web, robots_command):
    site, failing = web.site(robots(RULES)), web.site(answer(503))
    urls = [*map(site.url, ("/1", "/2", "/private")), failing.url("/")]
    disallowed, unreachable = (f"25 % of the URLs are {n}" for n in ("disallowed", "unreachable"))
    hours = "the crawl takes at least 0.000556 hours"
    for limits, told in (
        ("disallowed=25% unreachable=25% hours=1", []),
        ("disallowed=24%", [disallowed]),
        ("disallowed=0% unreachable=20% hours=0.0005", [disallowed, unreachable, hours]),
    ):
        run = robots_command("plan", *(f"--fail-if={limit}" for limit in limits.split()), *urls)
        assert (run.status, run.err.splitlines()) == (1 if told else 0, told)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.real_process
def test_what_is_known_is_told_when_it_is_ended(web, tmp_path):
    site, hanging = web.site(robots(RULES)), web.site(HANGS)
    with started("plan", site.url("/1"), hanging.url("/"), cwd=tmp_path) as process:
        wait_until(lambda: hanging.robots_requests and site.robots_requests)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None)
        out, err = process.stdout.read(), process.stderr.read()
    assert (process.returncode, err) == (2, "")
    assert re.search(r"The plan was ended before [12] URLs? were known\.\n\Z", out)


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminal")
@pytest.mark.parametrize(
    ("urls", "total"), [(["--urls-from", "-"], "12,001"), (["{0}", "{1}"], "2")]
)
@pytest.mark.real_process
def test_on_a_terminal_it_shows_how_far_it_is(web, tmp_path, urls, total):
    quick, slow, last = web.site(robots("")), web.site(held(robots(""))), web.site(robots(""))
    lines = [quick.url("/")] * 3_000 + [slow.url("/")] * 9_000 + [last.url("/")]
    (tmp_path / "urls.txt").write_text("# comment\n" + "\n".join(lines) + "\n")
    ours, theirs = os.openpty()
    arguments = ["plan", *(each.format(quick.url("/"), slow.url("/")) for each in urls)]
    with (
        (tmp_path / "urls.txt").open() as stdin,
        os.fdopen(ours, "rb", buffering=0) as screen,
        started(*arguments, cwd=tmp_path, stdin=stdin, stderr=theirs),
    ):
        os.close(theirs)
        wait_until(lambda: slow.robots_requests)
        slow.release()
        seen = b""
        with suppress(OSError):  # the end of a terminal
            while got := screen.read(1_000):
                seen += got
    drawn = seen.decode().split("\r\x1b[K")
    assert [text for text in drawn if re.fullmatch(rf"\[#*\.*\] [\d,]+ of {total}", text)]
    assert drawn[-1] == ""
