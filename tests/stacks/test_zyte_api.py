"""scrapy-zyte-api, against a server on loopback that speaks Zyte API."""

from __future__ import annotations

import pytest

from tests.stacks.endpoints import ZyteAPI

pytestmark = pytest.mark.needs("scrapy_zyte_api")

ADDONS = {"scrapy_zyte_api.Addon": 400, "scrapy_rep.Addon": 500}

MOVED = ["moved/private/moved"]


@pytest.fixture
def api(request):
    api = ZyteAPI(getattr(request, "param", None))
    yield api
    api.close()


def settings(api, **more):
    return {"ADDONS": ADDONS, "ZYTE_API_KEY": "key", "ZYTE_API_URL": api.url + "/v1/", **more}


def test_transparent_mode(stack, api):
    zyte = stack("scrapy-zyte-api")
    sites = zyte.sites()
    params = {"followRedirect": False}
    zyte.crawl(sites, settings=settings(api, ZYTE_API_AUTOMAP_PARAMS=params))
    zyte.check(sites, "transparent mode, followRedirect off", api)


def test_transparent_mode_as_it_is(stack, api):
    zyte = stack("scrapy-zyte-api")
    sites = zyte.sites()
    told = zyte.crawl(sites, settings=settings(api))
    zyte.check(sites, "transparent mode", api, known=MOVED)
    assert told["dropped"][sites.url("moved", "/moved")] == "rule"


def test_automap_with_browser_html(stack, api):
    zyte = stack("scrapy-zyte-api")
    sites = zyte.sites()
    told = zyte.crawl(sites, settings=settings(api, ZYTE_API_AUTOMAP_PARAMS={"browserHtml": True}))
    zyte.check(sites, "automap, browserHtml for all", api, known=MOVED)
    assert told["dropped"][sites.url("moved", "/moved")] == "rule"


def test_meta_of_each_page(stack, api):
    zyte = stack("scrapy-zyte-api")
    sites = zyte.sites()
    meta = {"zyte_api_automap": {"browserHtml": True}}
    told = zyte.crawl(sites, settings=settings(api, ZYTE_API_TRANSPARENT_MODE=False), meta=meta)
    zyte.check(sites, "meta of each page, browserHtml", api, known=MOVED)
    assert told["dropped"][sites.url("moved", "/moved")] == "rule"


@pytest.mark.parametrize("api", [401], indirect=True)
def test_a_key_that_is_refused(stack, api):
    zyte = stack("scrapy-zyte-api")
    sites = zyte.sites("plain", "none")
    store = {"REP_STORE": f"sqlite:///{(zyte.folder / 'robots.sqlite').as_posix()}"}
    zyte.crawl(sites, settings=settings(api, **store))
    assert sites.journal() == []
    # What the API refused says nothing of the sites.
    zyte.crawl(sites, settings=store)
    zyte.check(sites, "401 to everything; then directly", api)
