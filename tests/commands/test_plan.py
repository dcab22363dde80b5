"""``scrapy robots plan``, run as people run it, against sites whose requests are counted."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.commands.started import started
from tests.crawling.web import HANGS, answer, held, robots
from tests.waiting import wait_until

RULES = (
    "User-agent: *\nDisallow: /private\nCrawl-delay: 2\n\nUser-agent: other\nDisallow: /\n"
    "Content-Usage: ai=n\n"
)
XML = '<?xml version="1.0"?>\n<{0} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{1}</{0}>'
CRAWL = """
import scrapy
class Pages(scrapy.Spider):
    name = "pages"
    def parse(self, response):
        pass
"""


def urlset(*urls):
    return XML.format("urlset", "".join(f"<url><loc>{url}</loc></url>" for url in urls))


def index(*urls):
    return XML.format("sitemapindex", "".join(f"<sitemap><loc>{u}</loc></sitemap>" for u in urls))


def test_it_counts_and_requests_no_page(web, robots_command, tmp_path):
    site, failing = web.site(robots(RULES), host="127.0.0.1"), web.site(answer(503))
    lines = [site.url(f"/{n}") for n in range(11)]
    lines += [site.url("/private/1"), failing.url("/")]
    text = "\ufeff" + "\r\n".join([*lines, "", "# comment", "example.com/x", "ftp://a.example/"])
    (tmp_path / "urls.txt").write_text(text, encoding="utf-8", newline="")
    run = robots_command(
        "plan", "--urls-from", "urls.txt", "--json", "--delay", "7", "--other-agent", "other/1.0"
    )
    slow = {"origin": site.url(""), "urls": 11, "delay": 2.0, "seconds": 20.0}
    slow["delay_from"] = "robots.txt"
    counts = {"allowed": 11, "disallowed": 1, "unreachable": 1, "refused": 0, "seconds": 20.0}
    others = {"allowed": 0, "disallowed": 12, "unreachable": 1, "refused": 0, "seconds": 0.0}
    found = run.json
    (outage,) = found.pop("unreachable_origins")
    assert outage.pop("next_try") > 0
    assert outage == {"origin": failing.url(""), "urls": 1, "cause": "status 503"}
    assert found == {
        "urls": 15,
        **counts,
        "origins": 2,
        "slowest": [slow],
        "invalid": 2,
        "pending": 0,
        "complete": True,
        "with_delay": {"delay": 7.0, "seconds": 70.0},
        "with_agent": {"agent": "other/1.0", **others},
    }
    assert run.status == 0
    assert run.err.splitlines() == [
        "example.com/x: not an absolute http, https or ftp URL; "
        "did you mean https://example.com or http://example.com?",
        "ftp://a.example/: not an absolute http or https URL",
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
    run = robots_command("plan", *chosen, "--json", site.url("/1"), site.url("/2"))
    found = run.json
    assert found["seconds"] == seconds
    assert [host["delay_from"] for host in found["slowest"]] == [source] * (source is not None)


def test_text_names_what_is_slow_and_what_is_unreachable(web, robots_command):
    site, failing = web.site(robots(RULES)), [web.site(answer(503)) for _ in range(12)]
    urls = [site.url("/1"), site.url("/2"), *(each.url(f"/{n}") for each in failing for n in "12")]
    run = robots_command("plan", failing[5].url("/3"), *urls)
    lines = run.lines
    assert f"         2 s  {site.url('')}  2 pages, 2 s between two (robots.txt)" in lines
    start = lines.index("Unreachable")
    assert lines[start + 1] == f"     3 pages  {failing[5].url('')}  status 503"
    assert lines[start + 11 :] == ["  and 2 more (--json has all)"]


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


def test_purposes_refuse(web, robots_command):
    site = web.site(robots("User-agent: *\nContent-Usage: train-ai=n\n"))
    run = robots_command("plan", "--purpose", "ai-training", "--json", site.url("/"))
    assert run.json["refused"] == 1


def test_a_crawl_finds_the_records(web, run_scrapy, robots_command, tmp_path):
    site = web.site(robots("User-agent: *\nDisallow: /private\n"))
    store = ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite"]
    run = robots_command("plan", *store, site.url("/a"), site.url("/private"))
    assert "allowed              1" in run.out
    (tmp_path / "pages.py").write_text(
        CRAWL + f"    start_urls = [{site.url('/a')!r}, {site.url('/private')!r}]\n"
    )
    addon = ["-s", 'ADDONS={"scrapy_rep.Addon": 500}', "-s", "ROBOTSTXT_OBEY=True"]
    done = run_scrapy("runspider", "pages.py", *store, *addon, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert site.targets == ["/a"]
    assert len(site.robots_requests) == 1


def test_sitemaps_are_followed_and_obey(web, robots_command):
    site = web.site()
    packed = gzip.compress(urlset(site.url("/3"), site.url("/private")).encode(), mtime=0)
    paths = {
        "/index.xml": [
            answer(body=index(*map(site.url, ("/a.xml", "/b.xml.gz", "/private/c.xml"))))
        ],
        "/a.xml": [answer(body=urlset(site.url("/1"), site.url("/2")))],
        "/b.xml.gz": [answer(body=packed)],
    }
    site.change(robots("User-agent: *\nDisallow: /private\nSitemap: /index.xml\n"), paths=paths)
    run = robots_command("plan", "--sitemaps", "--json", site.url("/"))
    found = run.json
    assert (found["urls"], found["allowed"], found["disallowed"]) == (5, 4, 1), run.err
    assert sorted(site.targets) == ["/a.xml", "/b.xml.gz", "/index.xml"]
    assert "/private/c.xml" in run.err


def test_what_is_no_url_of_the_web_is_left_out(web, robots_command, tmp_path):
    secret = tmp_path / "local.xml"
    site = web.site()
    secret.write_text(urlset(site.url("/secret")))
    local, bad = secret.as_uri(), "http://[bad/map.xml"
    paths = {
        "/index.xml": [answer(body=index(local, bad, site.url("/a.xml")))],
        "/a.xml": [answer(body=urlset(bad, local, "relative", site.url("/1")))],
    }
    body = f"Sitemap: {bad}\nSitemap: {local}\nSitemap: data:,x\nSitemap: {{}}\n"
    site.change(robots(body.format(site.url("/index.xml").replace("http", "HTTP"))), paths=paths)
    run = robots_command("plan", "--sitemaps", "--json", site.url("/"))
    found = run.json
    assert (found["urls"], found["allowed"], found["invalid"]) == (5, 3, 2), run.err
    assert sorted(site.targets) == ["/a.xml", "/index.xml"]
    assert run.err.count("not a sitemap's URL") == 5


def test_indexes_in_each_other_end(web, robots_command):
    site = web.site()
    paths = {f"/{n}.xml": [answer(body=index(site.url(f"/{n + 1}.xml")))] for n in range(9)}
    site.change(robots("Sitemap: /0.xml\n"), paths=paths)
    run = robots_command("plan", "--sitemaps", "--json", site.url("/"))
    assert site.targets == ["/0.xml", "/1.xml", "/2.xml", "/3.xml"]
    assert "more than 3 indexes in each other" in run.err


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
@pytest.mark.parametrize("from_stdin", [False, True])
@pytest.mark.real_process
def test_what_is_known_is_told_when_it_is_ended(web, tmp_path, from_stdin):
    site, hanging = web.site(robots(RULES)), web.site(HANGS)
    urls = [site.url("/1"), hanging.url("/")]
    arguments = ["--urls-from", "-"] if from_stdin else urls
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with started("plan", "--json", *arguments, cwd=tmp_path, text=True, **pipes) as process:
        if from_stdin:  # which stays open
            process.stdin.write("\n".join(urls * 250) + "\n")
            process.stdin.flush()
        wait_until(lambda: hanging.robots_requests and site.robots_requests)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: process.poll() is not None)
        out, err = process.stdout.read(), process.stderr.read()
    found = json.loads(out)
    assert (process.returncode, found["complete"], err) == (2, False, "")
    assert found["pending"] >= 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such terminal")
@pytest.mark.parametrize(
    ("command", "total"),
    [
        (["plan", "--urls-from", "urls.txt"], "12,001"),
        (["plan", "--urls-from", "-"], None),
        (["plan", "--urls-from", "urls.txt", "--sitemaps"], None),
        (["plan", "{0}", "{1}"], "2"),
        (["check", "{0}", "{1}"], "2"),
    ],
)
@pytest.mark.real_process
def test_on_a_terminal_it_shows_how_far_it_is(web, tmp_path, command, total):
    quick, slow, last = web.site(robots("")), web.site(held(robots(""))), web.site(robots(""))
    lines = [quick.url("/")] * 3_000 + [slow.url("/")] * 9_000 + [last.url("/")]
    (tmp_path / "urls.txt").write_text("# comment\n" + "\n".join(lines) + "\n")
    ours, theirs = os.openpty()
    arguments = [each.format(quick.url("/"), slow.url("/")) for each in command]
    with (
        (tmp_path / "urls.txt").open() as stdin,
        os.fdopen(ours, "rb", buffering=0) as screen,
        started(*arguments, cwd=tmp_path, stdin=stdin, stdout=subprocess.PIPE, stderr=theirs),
    ):
        os.close(theirs)
        wait_until(lambda: slow.robots_requests)
        slow.release()
        seen = b""
        with suppress(OSError):  # the end of a terminal
            while got := screen.read(1_000):
                seen += got
    drawn = seen.decode().split("\r\x1b[K")
    bars = [re.fullmatch(r"\[(#*)\.*\] ([\d,]+) of ([\d,]+), [\d.]+/s", text) for text in drawn]
    counts = [re.fullmatch(r"[\d,]+ URLs, [\d.]+/s", text) for text in drawn]
    assert any(bars if total else counts)
    assert not any(counts if total else bars)
    for bar in filter(None, bars):
        done, of = (int(number.replace(",", "")) for number in bar.group(2, 3))
        assert (len(bar[1]), bar[3]) == (30 * done // of, total)
    assert drawn[-1] == ""
