"""``scrapy robots evidence``, of what crawls have written."""

import hashlib
import re

import pytest
from scrapy import Request

from scrapy_rep.extensions.evidence.formats import find_lines
from scrapy_rep.utils.text import describe_duration
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, redirect, robots

RULES = "User-agent: *\r\nDisallow: /private # \x1b[31m they are\nAllow: /private/open\n"
SHA256 = hashlib.sha256(RULES.encode()).hexdigest()
FORMS = ["evidence", "evidence.warc.gz"]


def shown(run):
    """What is printed, without what differs from crawl to crawl."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "(a moment)", run.out)
    return re.sub(r"settings [0-9a-f]{64}", "settings (a digest)", text).splitlines()


@pytest.mark.parametrize("form", FORMS)
async def test_it_tells_what_was_decided_and_shows_the_line(web, robots_command, tmp_path, form):
    site = web.site(robots(RULES), paths={"/old": [redirect("/private/open")]})
    old = Request(site.url("/old"), meta={"handle_httpstatus_all": False})
    settings = {"REP_EVIDENCE": tmp_path / form}
    await crawl(old, site.url("/private"), settings=settings)

    def told(path):
        """What is told of a page, to people, and for programs."""
        run = robots_command("evidence", site.url(path), "--in", form)
        line = robots_command("evidence", site.url(path), "--in", form, "--json").json
        where = [
            f"  {site.url('/robots.txt')}: available (status 200)",
            f"    fetched at (a moment), {describe_duration(line['age'])} before, {len(RULES)} bytes",
            f"    sha256 {SHA256}",
        ]
        return run, line, where

    run, _, where = told("/private/open")
    assert shown(run) == [
        f"allowed: {site.url('/private/open')}",
        f"  redirected from {site.url('/old')}",
        "  (a moment) GET, sent as testbot/1.0, status 200",
        "  product tokens: testbot",
        "  Allow: /private/open (line 3)",
        *where,
        "    3: Allow: /private/open",
        "  scrapy-rep 0.1.0, settings (a digest)",
    ]
    assert (run.status, run.err) == (0, "")
    run, line, where = told("/private")
    assert shown(run) == [
        f"disallowed: {site.url('/private')}",
        "  (a moment) GET, not sent",
        "  product tokens: testbot",
        "  Disallow: /private (line 2)",
        *where,
        "    2: Disallow: /private # \\x1b[31m they are",
        "  scrapy-rep 0.1.0, settings (a digest)",
    ]
    assert run.status == 1
    assert (line["kind"], line["text"]) == ("drop", "Disallow: /private # \x1b[31m they are")


@pytest.mark.parametrize("form", FORMS)
async def test_each_crawl_and_each_way_is_told(web, robots_command, tmp_path, form):
    site = web.site(answer(404))
    failing = web.site(answer(503))
    settings = {"REP_EVIDENCE": tmp_path / form}
    exempt = Request(site.url("/"), meta={"dont_obey_robotstxt": True})
    override = {"host": "127.0.0.1", "policy": "ignore", "reason": "ours"}
    await crawl(site.url("/"), failing.url("/"), settings=settings)
    await crawl(exempt, settings=settings)
    await crawl(site.url("/"), settings={**settings, "REP_OVERRIDES": [override]})
    lines = shown(robots_command("evidence", site.url("/"), "--in", form))
    verdicts = [line.partition(":")[0] for line in lines if line[0] != " "]
    assert verdicts == ["allowed", "not judged", "allowed"]
    assert f"  {site.url('/robots.txt')}: unavailable (status 404)" in lines
    assert "  exempt: dont_obey_robotstxt" in lines
    assert any(line.startswith("  override: {") and "ours" in line for line in lines)
    run = robots_command("evidence", failing.url("/"), "--in", form)
    assert (run.status, "  unreachable" in run.out) == (1, True)


async def test_a_text_that_was_changed_is_not_shown(web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    await crawl(site.url("/private"), settings={"REP_EVIDENCE": tmp_path / "evidence"})
    text = tmp_path / "evidence" / "texts" / SHA256[:2] / SHA256
    for change in (lambda: text.write_text("User-agent: *\nDisallow: /\n"), text.unlink):
        change()
        lines = shown(robots_command("evidence", site.url("/private"), "--in", "evidence"))
        assert "    the text is not there, or is another one" in lines
        assert not any(line.startswith("    2:") for line in lines)


@pytest.mark.parametrize(
    "damage",
    [
        (b'{"kind":"page"', b'!"kind":"page"'),
        (b'"kind":"page"', b'"find":"page"'),
        (b'"method":', b'"mexhod":'),
        (b'"robotstxt":{', b'"robotstxt":7,"":{'),
        (b"\x1f\x8b\x08", b"\x1f\x8b\x09"),
    ],
)
async def test_a_damaged_part_is_named_and_the_others_are_read(
    web, robots_command, tmp_path, damage
):
    of_warc = damage[0].startswith(b"\x1f")
    form = "evidence.warc.gz" if of_warc else "evidence"
    names = ["", "evidence-00002.warc.gz"] if of_warc else ["part-00001.jsonl", "part-00002.jsonl"]
    site = web.site(robots(RULES))
    await crawl(site.url("/a"), settings={"REP_EVIDENCE": tmp_path / form})
    first = tmp_path / form / names[0]
    whole = first.read_bytes()
    first.write_bytes(whole.replace(*damage))
    first.with_name(names[1]).write_bytes(whole)
    for arguments in ([], ["--json"]):
        run = robots_command("evidence", site.url("/a"), "--in", form, *arguments)
        assert run.status == 2
        assert run.err.endswith(f"{first.relative_to(tmp_path)}: damaged, and read only in part\n")
        assert run.out.count(site.url("/a")) == 1
    if of_warc:
        first.with_name(names[1]).unlink()
        run = robots_command("evidence", site.url("/a"), "--in", form)
        assert (run.status, run.out) == (2, "")


@pytest.mark.parametrize("form", FORMS)
async def test_wherever_a_crawl_was_killed_nothing_is_damaged(web, robots_command, tmp_path, form):
    site = web.site(robots(RULES))
    path = tmp_path / form
    await crawl(site.url("/a"), settings={"REP_EVIDENCE": path})
    part = path / "part-00001.jsonl" if path.is_dir() else path
    whole = part.read_bytes()
    for end in range(0, len(whole), 7):
        part.write_bytes(whole[:end])
        assert find_lines(path, site.url("/a"))[1] == set()
    part.write_bytes(whole[:-50])
    assert robots_command("evidence", site.url("/a"), "--in", form).status == 0


def test_of_a_url_that_no_crawl_has_met_nothing_is_told(robots_command, tmp_path):
    (tmp_path / "evidence").mkdir()
    run = robots_command("evidence", "http://example.com/", "--in", "evidence")
    assert (run.status, run.out) == (1, "")
    assert "nothing was written of http://example.com/" in run.err
