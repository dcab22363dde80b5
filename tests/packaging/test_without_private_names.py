"""Crawls with a Scrapy in which the package does not find a private name that it uses."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from scrapy.core.downloader import Downloader, Slot
from scrapy.core.downloader.handlers import DownloadHandlers
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.utils.reactor import CallLaterOnce

import scrapy_rep
from scrapy_rep.utils import download_slots
from tests.crawling.crawl import crawl
from tests.crawling.web import robots

NEEDED = [
    (ExecutionEngine, "_slot"),
    *((_Slot, name) for name in ("closing", "nextcall", "inprogress")),
    (CallLaterOnce, "schedule"),
    *((Downloader, name) for name in ("slots", "get_slot_key")),
    (Slot, "delay"),
]
"""What our queue can't do without."""
OTHERS = {
    ExecutionEngine: {"_start"},
    Downloader: {"total_concurrency", "per_slot_settings", "_delay", "middleware"},
    DownloadHandlers: {"_handlers"},
    Slot: {"concurrency"},
}
_OF_SLOTS = re.compile(r"get_slot_key|\"download_slot\"|throttling_scopes|\bSlot\(|\w\.slots\b")
"""What Scrapy's throttler is to replace."""


@pytest.fixture
def hide(monkeypatch):
    """A function that hides attributes of a class of Scrapy from the package."""

    def begin(of_class, names):
        def find(self, name):
            if name in names and sys._getframe(1).f_globals["__name__"].startswith("scrapy_rep."):
                raise AttributeError(name)
            return object.__getattribute__(self, name)

        monkeypatch.setattr(of_class, "__getattribute__", find)

    download_slots._missing_slot_attribute.cache_clear()
    yield begin
    download_slots._missing_slot_attribute.cache_clear()


async def warnings_of(web):
    site = web.site(robots("User-agent: *\nDisallow: /private\nCrawl-delay: 0.3\n"))
    result = await crawl(*map(site.url, ("/1", "/private", "/2")))
    assert result.dropped == {site.url("/private"): "rule"}
    assert sorted(site.targets) == ["/1", "/2"]
    assert result.stats["finish_reason"] == "finished"
    assert "log_count/ERROR" not in result.stats
    return [record.getMessage() for record in result.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(("of_class", "name"), NEEDED, ids=[name for _, name in NEEDED])
async def test_without_a_name_that_it_needs_the_queue_is_scrapys(web, hide, of_class, name):
    hide(of_class, {name})
    (warning,) = await warnings_of(web)
    assert re.match(rf"Scrapy('s \w+)? has no [\w.]*\b{name}\b[\w.]*, which ", warning)
    assert "Scrapy's own priority queue is used" in warning


async def test_without_the_class_of_slots_too(web, hide, monkeypatch):
    monkeypatch.setattr(download_slots, "downloader_module", SimpleNamespace())
    (warning,) = await warnings_of(web)
    assert "Scrapy has no scrapy.core.downloader.Slot" in warning


async def test_without_all_others_robots_txt_is_obeyed(web, hide):
    for of_class, names in OTHERS.items():
        hide(of_class, names)
    assert await warnings_of(web) == []


@pytest.mark.parametrize(
    ("of_class", "name"), [(ExecutionEngine, "downloader"), (Downloader, "handlers")]
)
async def test_without_a_place_for_the_wire_no_page_is_fetched(web, hide, of_class, name):
    hide(of_class, {name})
    site = web.site(robots(""))
    result = await crawl(site.url("/1"))
    assert site.targets == []
    (error,) = [record.getMessage() for record in result.records if record.levelname == "ERROR"]
    assert error.endswith("no page is fetched. Set DOWNLOADER to that of Scrapy")


def test_one_module_knows_download_slots():
    package = Path(scrapy_rep.__file__).parent
    found = [path for path in package.rglob("*.py") if _OF_SLOTS.search(path.read_text())]
    assert [path.name for path in found] == ["download_slots.py"]
