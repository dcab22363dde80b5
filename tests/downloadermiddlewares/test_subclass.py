"""Subclasses of the middleware that let some requests pass, as they are written for Scrapy's own."""

import logging

import pytest
from scrapy import Request

from scrapy_rep import RobotsTxtMiddleware
from tests.crawling.crawl import SCRAPYS_QUEUE, crawl
from tests.crawling.web import redirect, robots
from tests.downloadermiddlewares.test_robotstxt_fetch import FOLLOWS, Rewrites, SetsUserAgent

RULES = "User-agent: *\nDisallow: /exempt\nDisallow: /private\n"
PATHS = ["/exempt", "/private", "/public"]


def is_exempt(request):
    return "/exempt" in request.url


class Exempts(RobotsTxtMiddleware):
    def process_request(self, request):
        return None if is_exempt(request) else super().process_request(request)


class ExemptsAsync(RobotsTxtMiddleware):
    """As Scrapy's own has it since 2.13."""

    async def process_request(self, request):
        if not is_exempt(request):
            return await super().process_request(request)
        return None


subclasses = pytest.mark.parametrize("subclass", [Exempts, ExemptsAsync])


@subclasses
@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["our queue", "Scrapy's"])
@pytest.mark.parametrize("behind", [{}, {SetsUserAgent: 700}], ids=["", "decided again"])
async def test_what_a_subclass_exempts_is_sent_and_nothing_else(web, subclass, behind, queue):
    site = web.site(robots(RULES))
    settings = {"DOWNLOADER_MIDDLEWARES": {subclass: 100, **behind}, **queue}
    result = await crawl(*map(site.url, PATHS), settings=settings)
    assert sorted(site.targets) == ["/exempt", "/public"]
    assert result.dropped == {site.url("/private"): "rule"}
    assert result.messages(logging.WARNING, name="") == []
    assert len(site.robots_requests) == 1
    # There is one of it: the add-on's would drop what this one exempts.
    assert result.stats["robotstxt/forbidden"] == 1


@subclasses
async def test_a_subclass_is_asked_about_the_url_that_is_sent(web, subclass):
    site = web.site(robots(RULES))
    settings = {"DOWNLOADER_MIDDLEWARES": {subclass: 100, Rewrites: 700}}
    changes = {
        "/alias?1": "/exempt",
        "/alias?2": "/private",
        "/alias?3": "/public",
        "/exempt/alias?4": "/../private",
        "/exempt/alias?5": "/still",
    }
    requests = [Request(site.url(path), meta={"to": to}) for path, to in changes.items()]
    requests.append(Request(site.url("/exempt/?6")))
    result = await crawl(*requests, settings=settings)
    assert sorted(site.targets) == [
        "/exempt/../private?4",
        "/exempt/?6",
        "/exempt/still?5",
        "/exempt?1",
        "/public?3",
    ]
    assert result.dropped == {site.url("/private?2"): "rule"}


@subclasses
async def test_a_subclass_is_asked_about_the_url_that_the_handler_followed_to(web, subclass):
    paths = {"/in": [redirect("/private")], "/out": [redirect("/exempt")]}
    paths["/exempt/in"] = [redirect("/private")]
    site = web.site(robots(RULES), paths=paths)
    settings = {"DOWNLOADER_MIDDLEWARES": {subclass: 100}, **FOLLOWS}
    result = await crawl(*map(site.url, paths), settings=settings)
    assert len(result.responses) == 1
    assert {failure.value.redirected_to for failure in result.failures} == {site.url("/private")}
    assert {failure.request.url for failure in result.failures} == {
        site.url("/in"),
        site.url("/exempt/in"),
    }


class Replaces(RobotsTxtMiddleware):
    async def process_request(self, request):
        if request.url.endswith("/public"):
            return Request(request.url.replace("/public", "/other"))
        return await super().process_request(request)


async def test_a_subclass_may_return_another_request_for_the_url_that_was_followed_to(web):
    site = web.site(robots(RULES), paths={"/in": [redirect("/public")]})
    settings = {"DOWNLOADER_MIDDLEWARES": {Replaces: 100}, **FOLLOWS}
    assert (await crawl(site.url("/in"), settings=settings)).fetched == [site.url("/other")]


async def test_a_subclass_that_is_switched_off_leaves_the_middleware_in_place(web):
    site = web.site(robots(RULES))
    await crawl(*map(site.url, PATHS), settings={"DOWNLOADER_MIDDLEWARES": {Exempts: None}})
    assert site.targets == ["/public"]
