"""A crawl with a Scrapy that has given one of its private names to something else.

``python without.py NAME MODULES URL...``: wherever the modules use the name, they use another one,
so that Scrapy works as ever. Prints what became of the URLs; the log is on stderr.
"""

import ast
import json
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

NAME, MODULES, *URLS = sys.argv[1:]
OTHER = f"{NAME}_gone"


class Renaming(ast.NodeTransformer):
    """Gives attributes, methods, fields, classes and imports of that name another one."""

    def __init__(self, tree):
        self.is_global = any(
            isinstance(node, ast.ClassDef | ast.alias) and node.name == NAME
            for node in ast.walk(tree)
        )

    def generic_visit(self, node):
        super().generic_visit(node)
        match node:
            case ast.Attribute(attr=name) if name == NAME:
                node.attr = OTHER
            case ast.Name(id=name) if name == NAME and self.is_global:
                node.id = OTHER
            case ast.alias(name=name) if name == NAME:
                node.asname = OTHER
            case ast.ClassDef(name=name) if name == NAME:
                node.name = OTHER
            case ast.ClassDef(body=body):
                for each in body:
                    match each:
                        case ast.FunctionDef(name=name) if name == NAME:
                            each.name = OTHER
                        case ast.AnnAssign(target=ast.Name(id=name)) if name == NAME:
                            each.target.id = OTHER
        return node


class Loader(SourceFileLoader):
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        return compile(ast.fix_missing_locations(Renaming(tree).visit(tree)), path, "exec")


class Finder(MetaPathFinder):
    def find_spec(self, fullname, path, target=None):
        if fullname not in MODULES.split(","):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        spec.loader = Loader(fullname, spec.origin)
        return spec


sys.meta_path.insert(0, Finder())

import scrapy  # noqa: E402 - by that finder
from scrapy.crawler import CrawlerProcess  # noqa: E402

became = {}


class URLSpider(scrapy.Spider):
    name = "urls"

    async def start(self):
        for url in URLS:
            yield scrapy.Request(url, callback=self.came, errback=self.failed)

    def came(self, response):
        became[response.url] = response.status

    def failed(self, failure):
        became[failure.request.url] = type(failure.value).__name__


process = CrawlerProcess(
    {
        "ADDONS": {"scrapy_rep.Addon": 500},
        "REP_STORE": "memory://",
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "%(levelname)s %(name)s %(message)s",
    }
)
process.crawl(URLSpider)
process.start()
print(json.dumps(became))
