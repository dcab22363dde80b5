"""A report whose lines can't all be written."""

from __future__ import annotations

import json
import logging
import os
import sys

import pytest
import pytest_twisted

from scrapy_rep.utils.text import counted
from tests.crawling.crawl import crawl
from tests.crawling.web import robots

RULES = "User-agent: *\nDisallow: /private\n"
LARGEST = 1024**3
"""Bytes of a file; the files of the tests themselves have less."""
ROOM = 100
"""Bytes that are left: less than a line takes, so that a part of it is written."""

if sys.platform != "win32":
    import resource


@pytest.fixture
def largest_file():
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, limits[1]))
    yield LARGEST
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of files")
@pytest_twisted.ensureDeferred
async def test_a_full_disk_leaves_whole_lines_and_is_told(web, tmp_path, largest_file):
    site = web.site(robots(RULES))
    path = tmp_path / "report.jsonl"

    def then(response):
        os.truncate(path, largest_file - ROOM)

    result = await crawl(site.url("/"), settings={"REP_REPORT": path}, then=then)
    assert result.fetched == [site.url("/")]
    with path.open("rb") as file:
        written = [json.loads(line) for line in file.read(10_000).rstrip(b"\0").splitlines()]
    assert path.stat().st_size == largest_file - ROOM
    lost = result.stats["robotstxt/report/lost"]
    assert lost >= 1
    assert {line["kind"] for line in written} <= {"start", "fetch"}
    told = f"The report can't be written, the crawl continues: {path}: File too large"
    assert told in result.messages(logging.ERROR)
    assert result.messages(logging.WARNING)[-1] == (
        f"{counted(lost, 'line')} of the report could not be written: {path}"
    )
