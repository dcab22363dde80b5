"""Each line of the log in a subsection of the page by symptom is logged by a crawl with this symptom."""

import pytest
from scrapy import Request
from scrapy.settings import default_settings
from twisted.internet.defer import Deferred, gatherResults

from tests.crawling.crawl import AS_BY_DEFAULT, Lines, closing_when, crawl
from tests.crawling.web import HANGS, RULES, answer, page, robots
from tests.docs.blocks import lines_of, logged_by, of_kind, sections, unindented
from tests.docs.test_console import FollowingSpider

PAGE = "docs/usage/first-hour.rst"
STORED = {"REP_STORE": "sqlite:///robots.sqlite"}


def until_logged(begin):
    """Return arguments of a crawl that is closed as soon as a line begins so."""
    lines = Lines(begin)
    return {"opened": lines.listen, "meanwhile": closing_when(lambda _: lines.heard)}


async def slow(web):
    delayed = web.site(robots(f"{RULES}Crawl-delay: 60\n"))
    yield await crawl(delayed.url("/"), settings=AS_BY_DEFAULT)
    yield await crawl(web.site(paths={"/": [answer(429), answer(200)]}).url("/"))


async def not_ending(web):
    settings = {**AS_BY_DEFAULT, "REP_DEFER_TIMEOUT": 300}
    failing = web.site(answer(503))
    yield await crawl(failing.url("/"), settings=settings, **until_logged("Waiting for"))


async def waiting(web):
    yield await crawl(web.site(HANGS).url("/"), settings={"REP_TIMEOUT": 0.1})
    failing = web.site(answer(503))
    for _ in range(2):
        yield await crawl(failing.url("/"), settings={**STORED, "REP_RETRY_DELAY": 0.001})
    held = web.site(HANGS)
    both = [crawl(held.url("/"), **until_logged("Waiting for robots.txt")) for _ in range(2)]
    for run in await gatherResults([Deferred.fromCoroutine(each) for each in both]):
        yield run


async def all_dropped(web):
    yield await crawl(web.site(robots("User-agent: *\nDisallow: /\n")).url("/"))
    yield await crawl(web.site(answer(503)).url("/"))
    yield await crawl(Request(web.site().url("/"), meta={"proxy": web.site(answer(407)).url("")}))
    tagged = web.site(paths={"/page": page("<a href=next>", X_Robots_Tag="none")})
    yield await crawl(tagged.url("/page"), spidercls=FollowingSpider)


async def none_dropped(web):
    site = web.site(robots(RULES))
    html = web.site(answer(200, "<html><body>Welcome</body></html>"))
    yield await crawl(site.url("/"), settings={"ROBOTSTXT_OBEY": False})
    yield await crawl(site.url("/"), settings={"REP_DRY_RUN": True})
    yield await crawl(site.url("/"), settings={"USER_AGENT": default_settings.USER_AGENT})
    json = web.site(answer(200, '{"error": "not found"}'))
    others = [site.url("/") for site in (web.site(answer(404)), html, json, web.site(answer(403)))]
    handlers = {"DOWNLOAD_HANDLERS": {"gemini": "tests.fetch.test_handlers.Other"}}
    yield await crawl("gemini://example.com/", *others, settings=handlers)
    yield await crawl(Request(site.url("/private"), meta={"dont_obey_robotstxt": True}))


async def refused(web):
    edge = web.site(robots(""), paths={"*": [answer(403, headers={"cf-mitigated": "challenge"})]})
    priced = web.site(robots(""), paths={"*": [answer(402, headers={"crawler-price": "USD 0.01"})]})
    yield await crawl(edge.url("/"), edge.url("/2"), priced.url("/"))


SYMPTOMS = {
    "It is slow": slow,
    "It does not end": not_ending,
    "It waits": waiting,
    "Everything is dropped": all_dropped,
    "Nothing is dropped": none_dropped,
    "Allowed, but refused by the site": refused,
}


def test_each_symptom_has_its_crawls():
    assert SYMPTOMS.keys() == sections(PAGE).keys()


@pytest.mark.parametrize("symptom", SYMPTOMS)
async def test_the_lines_of_a_symptom_are_logged(symptom, web, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("scrapy_rep.cache.lookups._LOGGED_POLL", 1)
    logged = logged_by([run async for run in SYMPTOMS[symptom](web)])
    blocks = [
        block for block in of_kind("log") if unindented(block.text) in sections(PAGE)[symptom]
    ]
    assert blocks
    for block in blocks:
        assert [line for line in lines_of(block) if line not in logged] == []
