"""The report: what is written, and the page in a real browser."""

from __future__ import annotations

import builtins
import hashlib
import json
import logging
import os

import pytest
import pytest_twisted

from scrapy_rep import SettingsError
from scrapy_rep.extensions.report import counts
from scrapy_rep.extensions.report.counts import Collected
from scrapy_rep.extensions.report.page import PageWriter
from scrapy_rep.protocol.outcome import Available, Evidence, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Verdict
from tests.crawling.crawl import crawl
from tests.crawling.web import Web, answer, robots
from tests.extensions.report.browser import Page, find_browser

RULES = "User-agent: *\nDisallow: /private\n"
EVIL = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
WHY = f"agreed {EVIL}"
CRAWL = {
    "spider": "list", "started": 1e9, "finished": 1e9 + 60, "finish_reason": "finished", "dry_run": False,
    "tokens": ["testbot"], "fetches": 5, "responses": 7, "dropped": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def web():
    web = Web()
    yield web
    web.close()


async def reported(web, path, **settings):
    plain = web.site(robots(RULES))
    failing = web.site(answer(503))
    other = web.site(robots(RULES), host="127.0.0.2")
    urls = [plain.url("/private"), plain.url("/"), failing.url("/"), other.url("/private")]
    entry = {"host": "127.0.0.2", "policy": "ignore", "reason": WHY, "until": "2999-12-31"}
    urls[0] = urls[0].replace("//", "//user:secret@")
    settings = {"REP_REPORT": path, "REP_OVERRIDES": [entry], **settings}
    result = await crawl(*urls, settings=settings)
    return result, plain, failing, other


@pytest_twisted.ensureDeferred
async def test_json_lines_are_the_evidence(web, tmp_path):
    path = tmp_path / "report.jsonl"
    _, plain, failing, other = await reported(web, path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    by_kind = {}
    for line in lines:
        by_kind.setdefault(line["kind"], []).append(line)
    drops = {line["url"]: line for line in by_kind["drop"]}
    drop = drops[plain.url("/private")]
    assert (drop["rule"], drop["line"], drop["reason"]) == ("Disallow: /private", 2, "rule")
    assert drop["robotstxt_url"] == plain.url("/robots.txt")
    assert drop["sha256"] == hashlib.sha256(RULES.encode()).hexdigest()
    assert drop["fetched_at"] <= drop["at"]
    assert drops[failing.url("/")]["reason"] == "unreachable"
    (override,) = by_kind["override"]
    assert (override["url"], override["reason"]) == (other.url("/private"), WHY)
    assert override["until"] == "3000-01-01 00:00:00+00:00"
    assert sorted(line["outcome"] for line in by_kind["fetch"]) == ["available", "unreachable"]
    assert lines[-1]["kind"] == "end"
    assert (lines[-1]["dropped"], lines[-1]["fetches"]) == (2, 2)
    assert "secret" not in path.read_text()


@pytest_twisted.ensureDeferred
async def test_json_has_all(web, tmp_path):
    path = tmp_path / "report.json"
    result, plain, failing, _ = await reported(web, path)
    report = json.loads(path.read_text())
    assert report["crawl"]["tokens"] == ["testbot"]
    rows = {row["origin"]: row for row in report["origins"]}
    assert rows[plain.url("")]["dropped"] == rows[failing.url("")]["dropped"] == 1
    assert rows[failing.url("")]["unreachable_since"] is not None
    assert report["reasons"] == {"rule": 1, "unreachable": 1}
    assert [rule["rule"] for rule in report["rules"]] == ["Disallow: /private"]
    assert report["overrides"][0]["requests"] == 1
    assert {line["kind"] for line in report["evidence"]} == {"drop", "fetch", "override"}
    assert list(tmp_path.iterdir()) == [path]
    assert f"robots.txt report: {path}" in result.messages(logging.INFO)


@pytest_twisted.ensureDeferred
async def test_a_dry_run_reports_what_would_be(web, tmp_path):
    path = tmp_path / "report.json"
    await reported(web, path, REP_DRY_RUN=True)
    report = json.loads(path.read_text())
    assert report["crawl"]["dropped"] == 2
    assert {line["kind"] for line in report["evidence"]} == {
        "would-drop",
        "differs",
        "fetch",
        "override",
    }
    page = tmp_path / "report.html"
    await reported(web, page, REP_DRY_RUN=True)
    assert "Nothing was dropped" in page.read_text()
    assert "Where the built-in decides otherwise" in page.read_text()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("report.txt", "it takes a path that ends in .html, .json or .jsonl"),
        (5, "it takes a path that ends in"),
        ("{tmp}/none/report.json", "there is no such directory"),
        ("{tmp}/folder.jsonl", "it can't be written: Is a directory"),
        ("{tmp}/folder.html", "it can't be written: Is a directory"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_report_that_can_not_be_written_stops_the_crawl(web, tmp_path, path, says):
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "folder.html").mkdir()
    site = web.site(robots(RULES))
    if isinstance(path, str):
        path = path.format(tmp=tmp_path)
    with pytest.raises(SettingsError, match="REP_REPORT is ") as caught:
        await crawl(site.url("/"), settings={"REP_REPORT": path})
    assert says in str(caught.value)
    assert site.journal == []


@pytest_twisted.ensureDeferred
async def test_html_without_jinja2_stops_the_crawl(web, tmp_path, monkeypatch):
    real = builtins.__import__

    def importing(name, *arguments):
        if name == "scrapy_rep.extensions.report.page":
            raise ImportError
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(SettingsError, match=r"pip install scrapy-rep\[report\]"):
        await crawl(settings={"REP_REPORT": str(tmp_path / "report.html")})
    assert list(tmp_path.iterdir()) == []


@pytest_twisted.ensureDeferred
async def test_a_report_that_fails_stops_no_crawl(web, tmp_path):
    site = web.site(robots(RULES))
    folder = tmp_path / "folder"
    folder.mkdir()

    def then(response):
        (folder / "report.json").unlink(missing_ok=True)
        folder.rmdir()

    settings = {"REP_REPORT": str(folder / "report.json")}
    result = await crawl(site.url("/"), settings=settings, then=then)
    assert result.fetched == [site.url("/")]
    assert any(text.startswith("The report was not written") for text in result.messages())


def test_counts_are_bounded(monkeypatch):
    monkeypatch.setattr(counts, "MAX_ORIGINS", 3)
    collected = Collected()
    for number in range(6):
        origin = f"http://{number}.example"
        rules = robots_of(origin)
        verdict = rules.verdict("/")._replace(robotstxt_url=f"{origin}/robots.txt")
        collected.forbidden(origin, verdict)
    assert len(collected.origins) == 4
    assert collected.origins["(further origins)"].dropped == 3
    assert collected.rules["", "(further rules)", 0] == 3


def robots_of(origin):
    from scrapy_rep.protocol import RobotsTxt

    return RobotsTxt.parse(b"User-agent: *\nDisallow: /\n")


def test_an_origin_that_recovers_has_both_times():
    collected = Collected()
    down = Record("http://a", Unreachable(Evidence(5.0, "u", 503)), None, 5.0, 0.0, 1, 6.0)
    up = Evidence(9.0, "u", 200)
    copy = Available(b"", up)
    collected.learned(down, fetched=True)
    assert collected.row("http://a").unreachable_until is None
    row = collected.learned(Record("http://a", copy, copy), fetched=True)
    assert (row.unreachable_since, row.unreachable_until, row.fetches) == (5.0, 9.0, 2)


def many(origins):
    """What a crawl of so many origins comes to, hostile ones among them."""
    collected = Collected()
    for number in range(origins):
        origin = f"https://site-{number}.example"
        row = collected.row(origin)
        row.outcome = ("available", "available", "unavailable", "unreachable")[number % 4]
        row.status = (200, 200, 404, 503)[number % 4]
        row.size, row.fetches, row.fetched_at = number * 10, 1, 1e9 + number
        if row.outcome == "unreachable":
            row.unreachable_since = 1e9 + number
            row.error = f"ConnectionLost {EVIL}"
        for _ in range(number % 7):
            collected.forbidden(origin, Verdict(allowed=False, reason=Reason.UNREACHABLE))
    collected.rules[f"https://site-0.example/{EVIL}", f"Disallow: /{EVIL}\u202e\x1b[31m", 2] = 99
    collected.row(f"https://{EVIL}")
    return collected


@pytest.fixture
def page(tmp_path):
    browser = find_browser()
    if browser is None:
        if "CI" in os.environ:
            pytest.fail("no Chromium: the report's page can't be tested")
        pytest.skip("no Chromium on this machine")
    page = Page(browser, tmp_path / "profile")
    yield page
    page.close()


def column(page, number):
    return page.run(
        "Array.from(document.querySelectorAll('#table tbody tr')).filter(r => !r.hidden)"
        f".map(r => r.cells[{number}].textContent)"
    )


def written(tmp_path, collected, crawl=CRAWL):
    path = tmp_path / "report.html"
    PageWriter(path).finish(crawl, collected)
    return path


def test_the_page_sorts_and_searches_in_a_browser(tmp_path, page):
    page.open(written(tmp_path, many(40)))
    assert len(column(page, 0)) == 41
    assert column(page, 1)[0] == "unreachable"
    # By keyboard: to the heading, and press it.
    page.run("document.querySelectorAll('#table button')[2].focus()")
    for descending in (True, False):
        page.press("Enter", 13)
        dropped = [int(text) for text in column(page, 2)]
        assert dropped == sorted(dropped, reverse=descending)
        sort = page.run("document.querySelectorAll('#table th')[2].getAttribute('aria-sort')")
        assert sort == ("descending" if descending else "ascending")
    page.run("document.querySelectorAll('#table button')[0].click()")
    names = [name for name in column(page, 0) if "site-" in name]
    assert names == [f"https://site-{number}.example" for number in range(40)]
    page.run("document.getElementById('search').focus()")
    page.call("Input.insertText", text="UNREACHABLE site-1")
    assert column(page, 0) == [f"https://site-{n}.example" for n in (11, 15, 19)]
    assert page.run("document.getElementById('shown').textContent") == "3 of 41"
    assert page.problems == []


def test_hostile_text_does_nothing_in_a_browser(tmp_path, page):
    collected = many(8)
    row = collected.row("http://b.example")
    row.unreachable_since = 1.0
    page.open(written(tmp_path, collected, {**CRAWL, "spider": EVIL, "tokens": [EVIL]}))
    assert "owned" not in page.run("document.title").replace(EVIL, "")
    assert page.run("document.images.length") == 0
    assert page.run("document.scripts.length") == 1
    assert EVIL in page.run("document.body.innerText")
    assert "\\u202e\\x1b[31m" in page.run("document.body.innerText")
    # Even if something came in: only our own script runs.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.x=1\">')")
    assert page.run("window.x === undefined") is True


@pytest.mark.parametrize("width", [1280, 360])
def test_ten_thousand_origins_are_readable(tmp_path, page, width):
    path = written(tmp_path, many(10_000))
    assert path.stat().st_size < 1_000_000
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=800,
        deviceScaleFactor=1,
        mobile=width < 600,
    )
    page.open(path)
    assert len(column(page, 0)) == 1000
    assert "And 9,001 more, of which" in page.run("document.body.innerText")
    # The page itself never scrolls sideways; wide tables do, in their own frames.
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.problems == []
