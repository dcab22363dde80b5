"""Crawls with a Scrapy in which a private name that the package uses has become another one."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scrapy_rep
from tests.crawling.web import robots
from tests.waiting import PATIENCE

_CRAWLER = "scrapy.crawler"
_DOWNLOADER = "scrapy.core.downloader"
_ENGINE = "scrapy.core.engine"
_SCRAPER = "scrapy.core.scraper"
_QUEUES = "scrapy.pqueues"
NAMES = [
    # Of the engine.
    ("_slot", [_ENGINE], True),
    ("closing", [_ENGINE], True),
    ("nextcall", [_ENGINE], True),
    ("schedule", [_ENGINE, "scrapy.utils.reactor"], True),
    ("inprogress", [_ENGINE], True),
    ("scraper", [_ENGINE, _CRAWLER], True),
    ("slot", [_ENGINE, _SCRAPER], True),
    ("downloader", [_ENGINE, _QUEUES, _SCRAPER, _CRAWLER], True),
    # Of the downloader, and of its slots.
    ("active", [_DOWNLOADER, _ENGINE, _QUEUES, _SCRAPER], True),
    ("slots", [_DOWNLOADER, _QUEUES], True),
    ("get_slot_key", [_DOWNLOADER, _QUEUES], True),
    ("Slot", [_DOWNLOADER], True),
    ("delay", [_DOWNLOADER], True),
    # What our queue can do without.
    (
        "_start,total_concurrency,concurrency,per_slot_settings,_delay,handlers,_handlers,monotonic,DownloaderInterface",
        [_DOWNLOADER, f"{_DOWNLOADER}.handlers", _ENGINE, _QUEUES],
        False,
    ),
]
"""The names, the modules of Scrapy that use them, and whether our queue can't do without."""
WIRE = {"downloader", NAMES[-1][0]}
"""Without these, the last middleware checks delays and pauses."""
_OF_SLOTS = re.compile(r"get_slot_key|\"download_slot\"|throttling_scopes|\bSlot\(|\w\.slots\b")
"""What Scrapy's throttler is to replace."""
_WARNING = re.compile(r"^WARNING scrapy_rep\S* (.*)", re.MULTILINE)


@pytest.mark.parametrize(("name", "modules", "is_needed"), NAMES, ids=[each[0] for each in NAMES])
def test_a_crawl_without_a_name_obeys_and_ends(web, name, modules, is_needed):
    site = web.site(robots("User-agent: *\nDisallow: /private\nCrawl-delay: 0.3\n"))
    allowed = [site.url("/1"), site.url("/2")]
    forbidden = site.url("/private")
    order = [name, ",".join(modules), allowed[0], forbidden, allowed[1]]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("without.py"), *order],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        **dict.fromkeys(allowed, 200),
        forbidden: "RobotsTxtDisallowed",
    }
    assert sorted(site.targets) == ["/1", "/2"]
    assert "Traceback" not in done.stderr
    warnings = _WARNING.findall(done.stderr)
    of_wire = [warning for warning in warnings if "download_request_async" in warning]
    assert len(of_wire) == (name in WIRE), done.stderr
    of_queue = [warning for warning in warnings if warning not in of_wire]
    assert len(of_queue) == is_needed, done.stderr
    for warning in of_queue:
        assert re.search(rf"\b{name}\b", warning)
        assert "Scrapy's own priority queue is used" in warning


def test_one_module_knows_download_slots():
    package = Path(scrapy_rep.__file__).parent
    found = [path for path in package.rglob("*.py") if _OF_SLOTS.search(path.read_text())]
    assert [path.name for path in found] == ["download_slots.py"]
