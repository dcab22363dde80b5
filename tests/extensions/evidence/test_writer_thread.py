"""What becomes of evidence where crawls are killed, and where it can't be written."""

import gzip
import hashlib
import logging
import shutil
import sys
from pathlib import Path

import pytest
from scrapy.utils.defer import deferred_from_coro

from scrapy_rep import SettingsError
from scrapy_rep.extensions.evidence import parts, writer_thread
from scrapy_rep.extensions.evidence.formats import open_to_write
from scrapy_rep.extensions.evidence.jsonl import JsonLines
from scrapy_rep.extensions.evidence.parts import Line
from scrapy_rep.extensions.evidence.warc import end_of_members
from tests.crawling.crawl import crawl
from tests.crawling.process import CrawlProcess
from tests.crawling.web import HANGS, robots
from tests.extensions.evidence.evidence import is_sound, lines, of
from tests.waiting import wait_until

RULES = "User-agent: *\nDisallow: /private\n"
PAGES = 40


def part_of(path):
    return path / "part-00001.jsonl" if path.name == "evidence" else path


def test_killed_it_is_gone_on_with_and_no_line_is_lost(web, path):
    site = web.site(robots(RULES), paths={"/hangs": [HANGS]})
    urls = [site.url(f"/{number}") for number in range(PAGES)]
    process = CrawlProcess(
        "asyncio",
        [*urls, site.url("/hangs")],
        script=[["stats", {"response_received_count": PAGES}], ["say", "all are here"]],
        REP_EVIDENCE=str(path),
    )
    process.hear("all are here")
    wait_until(lambda: len(lines(path)) >= PAGES + 2)
    process.kill()
    part = part_of(path)
    whole = part.read_bytes()
    part.write_bytes(whole + whole[: len(whole) // 3])
    CrawlProcess("asyncio", [site.url("/again")], REP_EVIDENCE=str(path)).result()
    assert part.read_bytes().startswith(whole)
    assert [line["kind"] for line in lines(path)].count("start") >= 2
    for url in [*urls, site.url("/again")]:
        assert of(path, url)
    assert path.is_dir() or is_sound(path)


@pytest.mark.parametrize("cut", [1, 20, 150])
async def test_a_record_that_was_cut_is_taken_off(web, path, cut):
    site = web.site(robots(RULES))
    await crawl(site.url("/a"), settings={"REP_EVIDENCE": path})
    part = part_of(path)
    part.write_bytes(part.read_bytes()[:-cut])
    await crawl(site.url("/b"), settings={"REP_EVIDENCE": path})
    assert of(path, site.url("/a"))
    assert of(path, site.url("/b"))
    assert [line["kind"] for line in lines(path)].count("end") == 1
    assert path.is_dir() or is_sound(path)


@pytest.mark.parametrize("junk", [b"", b"no line", bytes(200_000)])
async def test_what_is_no_line_at_all_is_taken_off(web, tmp_path, junk):
    site = web.site(robots(RULES))
    path = tmp_path / "evidence"
    path.mkdir()
    part_of(path).write_bytes(junk)
    await crawl(site.url("/"), settings={"REP_EVIDENCE": path})
    assert lines(path)[0]["kind"] == "start"


def in_its_middle(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "damaged",
    [in_its_middle, lambda data: data + bytes(4096), lambda _: b"no member", lambda _: bytes(9)],
)
async def test_a_warc_that_is_damaged_is_left_as_it_is(web, tmp_path, damaged):
    site = web.site(robots(RULES))
    path, second = tmp_path / "evidence.warc.gz", tmp_path / "evidence-00002.warc.gz"
    await crawl(site.url("/a"), settings={"REP_EVIDENCE": path})
    data = damaged(path.read_bytes())
    path.write_bytes(data)
    await crawl(site.url("/b"), settings={"REP_EVIDENCE": path})
    assert path.read_bytes() == data
    assert is_sound(second)
    assert of(second, site.url("/b"))


async def test_parts_are_rotated_by_size(web, path, monkeypatch):
    monkeypatch.setattr(parts, "MAX_BYTES", 3_000)
    monkeypatch.setattr(writer_thread, "_BATCH", 1)  # else all lines that wait are in one part
    site = web.site(robots(RULES))
    urls = [site.url(f"/{number}") for number in range(12)]
    await crawl(*urls, settings={"REP_EVIDENCE": path})
    names = sorted(each.name for each in path.parent.rglob("*") if each.suffix in {".jsonl", ".gz"})
    assert len(names) >= 3
    assert names[:2] in (
        ["part-00001.jsonl", "part-00002.jsonl"],
        ["evidence-00002.warc.gz", "evidence-00003.warc.gz"],
    )
    for url in urls:
        assert len(of(path, url)) == 1


async def test_a_part_that_another_writes_to_is_left_alone(web, path):
    site = web.site(robots(RULES))
    path.parent.mkdir(exist_ok=True)
    other = open_to_write(path, '"version":""')
    other.write([Line({"kind": "start", "time": "2026-11-22T08:10:27Z"})])
    before = part_of(path).read_bytes()
    await crawl(site.url("/"), settings={"REP_EVIDENCE": path})
    other.close()
    assert part_of(path).read_bytes() == before
    assert of(path, site.url("/"))


async def test_where_files_can_not_be_locked_each_crawl_has_a_part(web, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    site = web.site(robots(RULES))
    for name in ("/a", "/b"):
        await crawl(site.url(name), settings={"REP_EVIDENCE": path})
        assert of(path, site.url(name))
    written = [each for each in path.parent.rglob("*") if each.suffix in {".jsonl", ".gz"}]
    assert len(written) == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (5, "it must be the path of a directory"),
        ("none/evidence", "it can't be written: No such file or directory"),
        ("none/evidence.warc.gz", "it can't be written: No such file or directory"),
        ("file", "it is a file, not a directory, and its name does not end in .warc.gz"),
        ("folder.warc.gz", "it can't be written: Is a directory"),
        ("%(nosuch)s", "placeholders are"),
        ("/proc", "it can't be written"),
    ],
)
async def test_what_can_not_be_written_stops_the_crawl(web, tmp_path, name, says):
    (tmp_path / "file").touch()
    (tmp_path / "folder.warc.gz").mkdir()
    site = web.site(robots(RULES))
    setting = str(tmp_path / name) if isinstance(name, str) else name
    with pytest.raises(SettingsError, match="REP_EVIDENCE is ") as caught:
        await crawl(site.url("/"), settings={"REP_EVIDENCE": setting})
    assert says in str(caught.value)
    assert site.journal == []


async def test_warc_without_warcio_stops_the_crawl(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scrapy_rep.extensions.evidence.warc", None)
    with pytest.raises(SettingsError, match=r"pip install scrapy-rep\[warc\]"):
        await crawl(settings={"REP_EVIDENCE": tmp_path / "evidence.warc.gz"})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
async def test_a_full_disk_is_told_once_and_stops_no_crawl(web, tmp_path):
    site = web.site(robots(RULES))
    path = tmp_path / "evidence"
    path.mkdir()
    (path / "part-00001.jsonl").symlink_to("/dev/full")
    urls = [site.url(f"/{number}") for number in range(5)]
    result = await crawl(*urls, settings={"REP_EVIDENCE": path})
    assert sorted(result.fetched) == urls
    (told,) = [text for text in result.messages(logging.ERROR) if "vidence" in text]
    assert (
        told == f"Evidence can't be written, the crawl continues: {path}: No space left on device"
    )
    # Those of the pages, of the robots.txt, the first one and the last.
    assert result.stats["robotstxt/evidence/lost"] == 8
    assert result.stats["robotstxt/evidence/written"] == 0


async def test_when_it_can_be_written_again_it_says_what_is_lost(web, tmp_path):
    site = web.site(robots(RULES))
    path = tmp_path / "evidence"
    part = path / "part-00001.jsonl"
    part.mkdir(parents=True)

    def then(response):
        if response.url == site.url("/a"):
            part.rmdir()
            return [site.url("/b")]
        return []

    result = await crawl(site.url("/a"), settings={"REP_EVIDENCE": path}, then=then)
    told = lines(path)
    assert told[0]["kind"] == "lost"
    assert told[0]["lines"] == result.stats["robotstxt/evidence/lost"] == told[-1]["lost"]
    assert of(path, site.url("/b"))


@pytest.mark.parametrize("when", ["in the crawl", "at its end"])
async def test_lines_of_a_part_that_is_removed_are_lost(web, path, when):
    site = web.site(robots(RULES))
    part = part_of(path)
    first, last = site.url("/a"), site.url("/b")

    def then(response):
        if response.url == first:
            wait_until(lambda: part.exists() and of(path, first))
            part.unlink()
        return [last] if response.url == first and when == "in the crawl" else []

    result = await crawl(first, settings={"REP_EVIDENCE": path}, then=then)
    lost = [text for text in result.messages(logging.ERROR) if "vidence" in text]
    # The start, the robots.txt and the page; then the next line was the first to be written anew.
    assert lost == [f"Evidence lost, because {part} was removed or replaced: 3 lines"]
    assert result.stats["robotstxt/evidence/lost"] == 3
    told = lines(path)
    assert result.stats["robotstxt/evidence/written"] == len(told)
    assert (told[0]["kind"], told[0]["lines"], told[-1]["kind"]) == ("lost", 3, "end")
    assert not of(path, first)
    assert bool(of(path, last)) == (when == "in the crawl")


async def test_lines_that_are_written_to_a_removed_directory_are_lost(tmp_path):
    path = tmp_path / "evidence"
    writing = writer_thread.WriterThread(open_to_write(path, '"version":""'), path)
    writing.put(Line({"kind": "page", "number": 1}))
    wait_until(lambda: writing.written)
    shutil.rmtree(path)
    await deferred_from_coro(writing.stop())
    assert (writing.written, writing.lost) == (0, 1)


async def test_where_the_disk_is_too_slow_memory_is_bounded(web, tmp_path, monkeypatch):
    monkeypatch.setattr(writer_thread, "_MAX_LINES", 0)
    site = web.site(robots(RULES))
    path = tmp_path / "evidence"
    result = await crawl(site.url("/"), site.url("/private"), settings={"REP_EVIDENCE": path})
    assert result.fetched == [site.url("/")]
    assert result.stats["robotstxt/evidence/lost"] == 5
    (told,) = [text for text in result.messages(logging.ERROR) if "vidence" in text]
    assert told.endswith("the disk is slower than the crawl")


async def test_many_lines_that_wait_are_all_written(tmp_path, monkeypatch):
    monkeypatch.setattr(writer_thread, "_BATCH", 3)
    writing = writer_thread.WriterThread(open_to_write(tmp_path, '"version":""'), tmp_path)
    for number in range(20):
        writing.put(Line({"kind": "page", "number": number}))
    await deferred_from_coro(writing.stop())
    assert [line["number"] for line in lines(tmp_path)] == list(range(20))
    assert (writing.written, writing.lost) == (20, 0)


def test_ends_are_found_anywhere(tmp_path):
    path = tmp_path / "file"

    def end(find, content):
        path.write_bytes(content)
        with path.open("rb") as file:
            return find(file)

    for size in (0, 1, 65_535, 65_536, 65_537, 200_000):
        assert end(JsonLines(path)._end_of_records, b"a\n" + b"x" * size) == 2
    random = b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(5_000))
    member = gzip.compress(random)
    for rest, ends in ((b"", 1), (member[:-1], 1), (member + b"\0", 2), (member * 2, 3)):
        assert end(end_of_members, member + rest) == ends * len(member)
