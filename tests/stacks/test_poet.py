"""scrapy-poet: page objects as arguments of callbacks."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.needs("scrapy_poet")

ADDONS = {"scrapy_poet.Addon": 300, "scrapy_rep.Addon": 500}


@pytest.mark.parametrize("spider", ["PoetSpider", "PoetDummySpider"])
def test_page_objects(stack, spider):
    poet = stack("scrapy-poet")
    sites = poet.sites()
    told = poet.crawl(sites, settings={"ADDONS": ADDONS}, spider=spider)
    dummy = spider == "PoetDummySpider"
    case = "callbacks without a response" if dummy else "page objects"
    # Nothing is downloaded for a callback that needs no response.
    missing = sites.reach() if dummy else []
    assert told["fetched"]
    poet.check(sites, case, missing=missing)
