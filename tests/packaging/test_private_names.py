"""What the package uses of Scrapy, Twisted and queuelib that these keep to themselves: a decision each.

What may change without notice is seen here by name. A name with an underscore that the package itself
gives nobody is somebody else's; so is a module with one.
"""

import ast
import re
from pathlib import Path

import scrapy_rep

PACKAGE = Path(scrapy_rep.__file__).parent
PRIVATE = re.compile(r"_[a-z]\w*")
MODULE = re.compile(r"(scrapy|twisted|queuelib)(\.\w+)*\._\w+")
PUBLIC = {"_replace", "_asdict", "_fields"}
"""Named tuples' own, which are documented."""
ALLOWED = {
    ("decision/sent_urls.py", "_get_httpx_response"): "whether a subclass of the handler sends by itself",
    ("decision/sent_urls.py", "_make_request"): "the same",
    ("decision/sent_urls.py", "scrapy.core.downloader.handlers._httpx"): "which library it uses",
    ("downloadermiddlewares/outermost.py", "_auth_proxy"): "what HttpProxyMiddleware notes of the proxy",
    ("downloadermiddlewares/outermost.py", "_scheme_proxy"): "the same",
    ("scheduler/redis_queue.py", "_decode_request"): "how a queue of scrapy-redis reads a request",
    ("fetch/fetcher.py", "_auth_proxy"): "robots.txt goes by the proxy of the page",
    ("fetch/fetcher.py", "_scheme_proxy"): "the same",
    ("utils/download_settings.py", "_base_streaming"): "handlers that stop on StopDownload",
    ("utils/download_settings.py", "_httpx"): "the same",
    ("fetch/causes.py", "twisted.web._newclient"): "home of the errors that tell of an origin",
    ("spiders.py", "_parse_sitemap"): "the callback of SitemapSpider",
    ("utils/scrapy_internals.py", "_headers"): "a request without headers, in a tenth of the time",
    ("utils/scrapy_internals.py", "_default_client"): "connections for robots.txt files beside those of pages",
    ("utils/scrapy_internals.py", "_session"): "the same",
    ("utils/scrapy_internals.py", "_transport"): "the same",
    ("utils/scrapy_internals.py", "scrapy.core.downloader.handlers._aiohttp"): "the same",
    ("utils/scrapy_internals.py", "scrapy.core.downloader.handlers._httpx"): "the same",
    ("utils/download_slots.py", "_delay"): "the delay that is told, of a slot that is made next",
    ("utils/scrapy_internals.py", "_conns"): "idle connections that are closed where no file is left",
    ("utils/scrapy_internals.py", "_slot"): "NEEDED",
    ("utils/per_crawl.py", "_scrapy_rep"): "our own: a crawler has no place for what belongs to a crawl",
}  # fmt: skip
"""What each is for. Those of the engine are in NEEDED with their reasons, and are tried at the start."""


def given(tree):
    """Names with an underscore that this module gives to something of its own."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                yield from (
                    each.value for each in ast.walk(value) if isinstance(each, ast.Constant)
                )


def used(tree):
    """Names with an underscore that are looked up on something, and private modules."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if PRIVATE.fullmatch(name):
                yield name
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in {"scrapy", "twisted", "queuelib"}:
                    if MODULE.fullmatch(module):
                        yield module
                    yield from (each.name for each in names if PRIVATE.fullmatch(each.name))
            case ast.Constant(value=str(name)) if PRIVATE.fullmatch(name) or MODULE.fullmatch(name):
                yield name


def of_others():
    """The module of ours and the name; keys of our own in the meta begin with our name."""
    trees = {path: ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}
    ours = PUBLIC.union(*map(given, trees.values()))
    return {
        (str(path.relative_to(PACKAGE)), name)
        for path, tree in trees.items()
        for name in used(tree)
        if name not in ours and not name.startswith("_robotstxt")
    }


def test_every_private_name_is_a_decision():
    assert of_others() == ALLOWED.keys()
