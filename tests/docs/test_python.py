"""The Python of the docs: settings are read, values compared, spiders and extensions run."""

import ast
import importlib.util
import logging
import re
import sys
from types import MethodType, SimpleNamespace

import pytest
import scrapy
from scrapy import Request
from scrapy.settings import Settings, default_settings
from scrapy.utils.reactor import is_asyncio_reactor_installed

from scrapy_rep import Robots
from scrapy_rep.settings import Options, unknown_settings
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots
from tests.docs.blocks import ROOT, of_kind
from tests.extensions.report.browser import find_browser

API = "docs/reference/api.rst"
NAME = "an_example_of_the_docs"
OTHERS = {
    "PLAYWRIGHT_ABORT_REQUEST",
    "PLAYWRIGHT_CONTEXTS",
    "REDIS_URL",
    "SCHEDULER_PERSIST",
    "SCHEDULER_QUEUE_CLASS",
    "ZYTE_API_AUTOMAP_PARAMS",
}
"""Settings of other projects."""
HTML = {"Content-Type": "text/html"}
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"
VALUE = re.compile(r"(?m)^( *)(\S.*)  # (.+)$")


def values(source, told):
    """Return ``source`` with each ``expression  # value`` as a comparison."""

    def compare(match):
        indent, expression, value = match.groups()
        try:
            ast.parse(expression, mode="eval")
        except SyntaxError:
            return match[0]
        told.add(expression)
        return f"{indent}compare({expression!r}, {expression}, {value!r})"

    return VALUE.sub(compare, source)


def site_of(web):
    pages = web.site()
    sitemap = f"<urlset><url><loc>{pages.url('/a')}</loc></url></urlset>"
    sitemaps = web.site(paths={"/sitemap.xml": [answer(200, sitemap)]})
    rules = "User-agent: *\nDisallow: /private\nDisallow: /search\n"
    return web.site(robots(f"{rules}Sitemap: {sitemaps.url('/sitemap.xml')}\n"))


@pytest.mark.parametrize("block", of_kind("python"), ids=lambda block: block.page)
async def test_python_of_the_docs_is_run(block, web, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    site = site_of(web)
    told, compared = set(), set()

    def compare(expression, value, text):
        compared.add(expression)
        assert text in {repr(value), str(value)}

    source = values(block.text.replace("https://example.com", site.url("").rstrip("/")), told)
    # A file, as Scrapy reads the source of callbacks.
    path = tmp_path / f"{NAME}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, NAME, module)
    names = vars(module)
    names.update(scrapy=scrapy, compare=compare)
    spec.loader.exec_module(module)
    imported = {name for name in names if f" import {name}" in block.text}
    check_settings({n: value for n, value in names.items() if n.isupper() and n not in imported})
    for value in list(names.values()):
        if getattr(value, "__module__", None) == NAME:
            await run(value, block, site, web=web, tmp_path=tmp_path)
    assert compared == told
    assert ("print(" in block.text) == bool(capsys.readouterr().out)


def test_each_function_of_the_api_has_an_example():
    page = (ROOT / API).read_text()
    examples = "".join(block.text for block in of_kind("python") if block.page == API)
    names = set(re.findall(r"autofunction:: .*?(\w+)$", page, re.MULTILINE))
    names |= {name for name in vars(Robots) if not name.startswith("_") and name != "decider"}
    for members in re.findall(r"usage\.Usage\n    :members: (.+)", page):
        names |= set(members.split(", "))
    assert len(names) > 25
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", examples)] == []


def check_settings(values):
    for name in values:
        known = hasattr(default_settings, name) or name in OTHERS or name == "ROBOTSTXT_USER_AGENT"
        assert known or name.startswith("REP_"), name
    settings = Settings(values)
    assert not unknown_settings(settings)
    Options.from_settings(settings)


async def crawl_in_a_browser(example, web):
    """Crawl a page, with an image that is disallowed, with a function of the docs for its browser."""
    pytest.importorskip("scrapy_playwright")
    if not is_asyncio_reactor_installed():
        pytest.skip("no reactor for it")
    page = answer(200, "<img src=/private/x.png><img src=/y.png>", headers=HTML)
    site = web.site(robots("User-agent: *\nDisallow: /private\n"), paths={"/": [page]})
    settings = {
        "DOWNLOAD_HANDLERS": {"http": HANDLER},
        "PLAYWRIGHT_LAUNCH_OPTIONS": {"executable_path": find_browser(), "args": ["--no-sandbox"]},
        "PLAYWRIGHT_ABORT_REQUEST": example,
    }
    result = await crawl(Request(site.url("/"), meta={"playwright": True}), settings=settings)
    assert [response.status for response in result.responses] == [200]
    assert "/y.png" in site.targets
    assert "/private/x.png" not in site.targets
    return result


async def run(example, block, site, *, web, tmp_path):
    """Crawl with a spider, a middleware, an extension or an errback of the docs."""
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite", "USER_AGENT": "mybot/1.0"}
    if "abort_disallowed" in block.text:
        runs = [await crawl_in_a_browser(example, web)]
    elif not isinstance(example, type):
        # A method of a spider.
        failing = web.site(answer(503))
        urls = [site.url("/private")]
        if "UNREACHABLE" in block.text:
            urls += [failing.url("/"), "http://no-such-name.invalid/"]
        runs = [await crawl(*urls, failed=MethodType(example, SimpleNamespace(later=[])))]
    elif issubclass(example, scrapy.Spider):
        starts = {} if hasattr(example, "sitemap_urls") else {"start_urls": [site.url("/")]}
        runs = [await crawl(spidercls=example, settings=settings, **starts)]
        assert runs[0].stats["response_received_count"] >= 1
    else:
        kind = "DOWNLOADER_MIDDLEWARES" if hasattr(example, "process_request") else "EXTENSIONS"
        settings[kind] = {example: 100}
        runs = [await crawl(site.url("/"), site.url("/private"), settings=settings)]
    for each in runs:
        assert each.stats["finish_reason"] == "finished"
        assert [r.getMessage() for r in each.records if r.levelno >= logging.ERROR] == []
        assert each.stats["robotstxt/request_count"] >= 1
