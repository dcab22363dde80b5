"""The Python of the docs: settings are read, values compared, spiders and extensions run."""

from __future__ import annotations

import ast
import importlib.util
import logging
import re
import sys
from types import MethodType, SimpleNamespace

import pytest
import pytest_twisted
import scrapy
from scrapy.settings import Settings, default_settings

from scrapy_rep.settings import Options, unknown_settings
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots
from tests.docs.blocks import of_kind

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
    """Open a site with a sitemap; its robots.txt is another one when it is asked for again."""
    pages = web.site()
    sitemap = f"<urlset><url><loc>{pages.url('/a')}</loc></url></urlset>"
    sitemaps = web.site(paths={"/sitemap.xml": [answer(200, sitemap)]})
    rules = "User-agent: *\nDisallow: /private\nDisallow: /search\n"
    return web.site(robots(f"{rules}Sitemap: {sitemaps.url('/sitemap.xml')}\n"), robots(rules))


@pytest.mark.parametrize("block", of_kind("python"), ids=lambda block: block.page)
@pytest_twisted.ensureDeferred
async def test_python_of_the_docs_is_run(block, web, tmp_path, monkeypatch, capsys, clock):
    monkeypatch.chdir(tmp_path)
    site = site_of(web)
    told, compared = set(), set()

    def compare(expression, value, text):
        compared.add(expression)
        assert text in {repr(value), str(value)}

    source = values(block.text, told).replace("https://example.com", site.url("").rstrip("/"))
    # A file, as Scrapy reads the source of callbacks.
    path = tmp_path / f"{NAME}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(NAME, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, NAME, module)
    names = vars(module)
    names.update(scrapy=scrapy, compare=compare)
    spec.loader.exec_module(module)
    check_settings({name: value for name, value in names.items() if name.isupper()})
    for value in list(names.values()):
        if getattr(value, "__module__", None) == NAME:
            await run(value, block, site, web=web, tmp_path=tmp_path, clock=clock)
    assert compared == told
    assert ("print(" in block.text) == bool(capsys.readouterr().out)


def check_settings(values):
    for name in values:
        known = hasattr(default_settings, name) or name in OTHERS or name == "ROBOTSTXT_USER_AGENT"
        assert known or name.startswith("REP_"), name
    settings = Settings(values)
    assert not unknown_settings(settings)
    Options.from_settings(settings)


async def run(example, block, site, *, web, tmp_path, clock):
    """Crawl with a spider, a middleware, an extension or an errback of the docs."""
    settings = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    if not isinstance(example, type):
        # A method of a spider.
        failing = web.site(answer(503))
        urls = [site.url("/private")] + [failing.url("/")] * ("UNREACHABLE" in block.text)
        runs = [await crawl(*urls, failed=MethodType(example, SimpleNamespace(later=[])))]
    elif issubclass(example, scrapy.Spider):
        starts = {} if hasattr(example, "sitemap_urls") else {"start_urls": [site.url("/")]}
        runs = [await crawl(spidercls=example, settings=settings, **starts)]
        assert runs[0].stats["response_received_count"] >= 1
    else:
        kind = "DOWNLOADER_MIDDLEWARES" if hasattr(example, "process_request") else "EXTENSIONS"
        settings[kind] = {example: 100}
        runs = [await crawl(site.url("/"), settings=settings)]
        # Its robots.txt is asked for again then.
        clock.advance(1_000_000)
        runs.append(await crawl(site.url("/"), settings=settings))
    for each in runs:
        assert each.stats["finish_reason"] == "finished"
        assert [r.getMessage() for r in each.records if r.levelno >= logging.ERROR] == []
        assert each.stats["robotstxt/request_count"] >= 1
