"""Evidence: each decision is told truly, and stays readable whatever happens to the crawl."""

import gzip
import hashlib
import logging
import os
from collections import Counter

import pytest
from scrapy import Request
from scrapy.utils.test import get_crawler
from twisted.internet.defer import Deferred, DeferredList

from scrapy_rep import SettingsError
from scrapy_rep.extensions.evidence import _LineFile
from tests.crawling.crawl import crawl, releasing_when
from tests.crawling.process import CrawlProcess
from tests.crawling.web import PAGE, answer, held, page, redirect, robots
from tests.downloadermiddlewares.test_robotstxt_fetch import Follows
from tests.extensions.evidence import lines
from tests.waiting import wait_until

RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n"
SHA256 = hashlib.sha256(RULES.encode()).hexdigest()


@pytest.fixture(params=["evidence.jsonl", "new/folder/evidence.jsonl.gz"])
def path(request, tmp_path):
    return tmp_path / request.param


def by_url(path):
    return {line["url"]: line for line in lines(path)}


async def test_each_decision_has_a_line_with_all_that_decided(web, path):
    paths = {"/moved": [redirect("/private/2")], "/flaky": [answer(503), answer(200, PAGE)]}
    site = web.site(robots(RULES), paths=paths)
    urls = [site.url(each) for each in ("/private", "/private/open", "/flaky")]
    moved = Request(site.url("/moved"), meta={"handle_httpstatus_all": False})
    result = await crawl(*urls, moved, settings={"REP_EVIDENCE": path, "RETRY_TIMES": 1})
    assert f"robots.txt evidence: {path}" in result.messages(logging.INFO)
    assert Counter(line["url"] for line in lines(path)) == {
        urls[0]: 1, urls[1]: 1, urls[2]: 2, moved.url: 1, site.url("/private/2"): 1,
    }  # fmt: skip
    line = by_url(path)[urls[0]]
    assert line == {
        "time": line["time"],
        "url": urls[0],
        "method": "GET",
        "allowed": False,
        "reason": "rule",
        "rule": "Disallow: /private",
        "line": 2,
        "robotstxt_url": site.url("/robots.txt"),
        "cause": None,
        "dropped": True,
        "tokens": ["testbot"],
        "sha256": SHA256,
        "fetched": line["fetched"],
        "override": None,
        "usage": None,
        "crawl": line["crawl"],
        "version": line["version"],
    }
    assert line["fetched"] <= line["time"]
    line = by_url(path)[urls[1]]
    assert (line["allowed"], line["dropped"], line["line"]) == (True, False, 3)
    assert {(each["crawl"], each["sha256"]) for each in lines(path)} == {(line["crawl"], SHA256)}


async def test_what_has_no_rules_is_told_too(web, path, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("User-agent: *\nDisallow: /mine\n")
    of_file = hashlib.sha256(rules.read_bytes()).hexdigest()
    site, failing, missing = web.site(robots(RULES)), web.site(answer(503)), web.site(answer(404))
    nofollow = page('<meta name="robots" content="nofollow"><a href="/x">x</a>')
    tags = web.site(robots(""), paths={"/page": nofollow}, host="127.0.0.2")
    ruled, shut = (web.site(robots(RULES), host=f"127.0.0.{n}") for n in (3, 4))
    overrides = [
        {"host": ruled.host, "policy": "file", "path": str(rules), "reason": "agreed"},
        {"host": shut.host, "policy": "disallow", "reason": "asked"},
    ]
    usage = web.site(robots("User-agent: *\nContent-Usage: train-ai=n\n"), host="127.0.0.5")
    bad = failing.url("/").replace("127.0.0.1", "127.0.0.1%00")
    exempt = Request(site.url("/private"), meta={"dont_obey_robotstxt": True})
    pages = [failing.url("/"), missing.url("/"), ruled.url("/mine"), shut.url("/"), usage.url("/")]
    settings = {
        "REP_EVIDENCE": path,
        "REP_OVERRIDES": overrides,
        "REP_PURPOSES": "ai-training",
        "REP_USAGE_ACTION": "drop",
    }

    def then(response):
        return [tags.url("/x")] if response.url == tags.url("/page") else []

    others = (bad, exempt, site.url("/robots.txt"), tags.url("/page"))
    await crawl(*pages, *others, settings=settings, then=then)
    told = by_url(path)
    names = ("allowed", "reason", "cause", "sha256")
    assert {url: tuple(map(line.get, names)) for url, line in told.items()} == {
        failing.url("/"): (False, "unreachable", "status 503", None),
        missing.url("/"): (True, "unavailable", None, None),
        ruled.url("/mine"): (False, "rule", None, of_file),
        shut.url("/"): (False, "override", None, None),
        usage.url("/"): (False, "usage", None, hashlib.sha256(b"User-agent: *\nContent-Usage: train-ai=n\n").hexdigest()),
        bad: (False, "no-origin", None, None),
        site.url("/robots.txt"): (True, "robotstxt", None, None),
        tags.url("/page"): (True, "no-rule", None, hashlib.sha256(b"").hexdigest()),
        tags.url("/x"): (False, "nofollow", None, None),
    }  # fmt: skip
    assert told[ruled.url("/mine")]["robotstxt_url"] == rules.as_uri()
    assert told[shut.url("/")]["override"]["reason"] == "asked"
    assert told[usage.url("/")]["usage"]["results"] == {"ai-training": "disallow"}
    assert told[failing.url("/")]["fetched"] is not None


async def test_what_a_dry_run_sends_and_where_a_handler_went_by_itself_is_told(web, path):
    site = web.site(robots(RULES), paths={"/a": [redirect("/private")]})
    settings = {"REP_EVIDENCE": path, "DOWNLOAD_HANDLERS": {"http": Follows}}
    await crawl(site.url("/a"), settings={**settings, "REP_DRY_RUN": True})
    await crawl(site.url("/a"), settings=settings)
    names = ("url", "allowed", "dropped")
    assert [tuple(map(line.get, names)) for line in lines(path)] == [
        (site.url("/a"), True, False),
        (site.url("/private"), False, False),
        (site.url("/a"), True, False),
        (site.url("/private"), False, True),
    ]


async def test_a_stale_copy_is_the_text_that_is_told(web, path, clock, tmp_path):
    site = web.site(robots(RULES), answer(503))
    settings = {
        "REP_EVIDENCE": path,
        "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
        "REP_UNREACHABLE_STALE_AFTER": 0,
    }
    await crawl(site.url("/a"), settings=settings)
    clock.advance(100_000)
    await crawl(site.url("/b"), settings=settings)
    first, second = lines(path)
    assert first["sha256"] == second["sha256"] == SHA256
    assert first["fetched"] == second["fetched"]
    assert first["crawl"] != second["crawl"]


async def test_crawls_at_once_append_to_one_file_and_know_what_the_other_has_fetched(web, path):
    site = web.site(held(robots(RULES)))
    options = {"meanwhile": releasing_when(lambda _: site.robots_requests, site)}
    urls = site.url("/a"), site.url("/b")
    crawls = [crawl(url, settings={"REP_EVIDENCE": path}, **options) for url in urls]
    await DeferredList([Deferred.fromCoroutine(each) for each in crawls])
    told = sorted((line["url"], line["sha256"]) for line in lines(path))
    assert told == [(url, SHA256) for url in urls]


def test_after_a_kill_it_is_read_and_the_resumed_crawl_appends(web, path, tmp_path):
    site = web.site(robots(RULES), paths={"/held": [held(answer(200, PAGE)), answer(200, PAGE)]})
    settings = {
        "REP_EVIDENCE": str(path),
        "JOBDIR": str(tmp_path / "job"),
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0.6,
    }
    urls = [site.url(f"/{name}") for name in (0, 1, 2, "held", 4)]
    killed = CrawlProcess("asyncio", urls, **settings)
    wait_until(lambda: "/held" in site.targets)
    killed.kill()
    before = lines(path)
    assert before
    assert {line["url"] for line in before} <= set(urls[:4])
    CrawlProcess("asyncio", [site.url("/x")], **settings).result()
    after = lines(path)
    assert after[: len(before)] == before
    assert {line["url"] for line in after[len(before) :]} >= {urls[4], site.url("/x")}
    assert len({line["crawl"] for line in after}) == 2


async def test_a_full_disk_stops_no_crawl(web, tmp_path):
    path = tmp_path / "evidence.jsonl"
    path.symlink_to("/dev/full")
    site = web.site(robots(RULES))
    result = await crawl(site.url("/"), site.url("/b"), settings={"REP_EVIDENCE": path})
    assert len(result.responses) == 2
    (error,) = result.messages(logging.ERROR)
    assert error == (
        f"Evidence can't be written, the crawl continues without: {path}: No space left on device"
    )
    assert result.stats["robotstxt/evidence/lost"] == 2


def test_what_a_full_disk_has_cut_is_removed(path):
    resource = pytest.importorskip("resource")  # not on Windows
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"{}\n") if path.suffix == ".gz" else b"{}\n")
    before = path.read_bytes()
    file = _LineFile(path, get_crawler())
    file.write(os.urandom(4_000).hex().encode())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 1_000, hard))
    try:
        file.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.lost
    assert path.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_is_read_only_stops_the_crawl(web, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    site = web.site(robots(RULES))
    with pytest.raises(SettingsError, match="Permission denied"):
        await crawl(site.url("/"), settings={"REP_EVIDENCE": tmp_path / "closed" / "a.jsonl"})


@pytest.mark.parametrize(
    ("setting", "path", "says"),
    [
        ("REP_EVIDENCE", "{tmp}/folder.jsonl", "it can't be written: Is a directory"),
        ("REP_EVIDENCE", "{tmp}/file/b/a.jsonl", "it can't be written: Not a directory"),
        (
            "REP_EVIDENCE",
            "{tmp}/" + 300 * "a" + ".jsonl",
            "it can't be written: File name too long",
        ),
        ("REP_EVIDENCE", "{tmp}/%(no)s.jsonl", "placeholders are %(time)s"),
        ("REP_EVIDENCE", "{tmp}/%(name)d.jsonl", "placeholders are %(time)s"),
        ("REP_REPORT", "{tmp}/100%.json", "placeholders are %(time)s"),
        ("REP_REPORT", "{tmp}/folder.html", "it can't be written: Is a directory"),
    ],
)
async def test_a_path_that_can_not_be_written_stops_the_crawl(web, tmp_path, setting, path, says):
    for ending in ("jsonl", "html"):
        (tmp_path / f"folder.{ending}").mkdir()
    (tmp_path / "file").touch()
    site = web.site(robots(RULES))
    with pytest.raises(SettingsError, match=f"{setting} is ") as caught:
        await crawl(site.url("/"), settings={setting: path.replace("{tmp}", str(tmp_path))})
    assert says in str(caught.value)
    assert site.journal == []
