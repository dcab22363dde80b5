"""A crawl with a Scrapy that has given some of its private names to something else.

``python without.py NAMES MODULES URL...``: wherever the modules use a name, they use another one,
so that Scrapy works as ever. Prints what became of the URLs; the log is on stderr.
"""

import ast
import json
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder, SourceFileLoader

NAMES, MODULES, *URLS = sys.argv[1:]


class Renaming(ast.NodeTransformer):
    """Gives attributes, methods, fields, classes and imports of that name another one."""

    def __init__(self, name, tree):
        self.name = name
        self.is_global = any(
            isinstance(node, ast.ClassDef | ast.alias) and node.name == name
            for node in ast.walk(tree)
        )

    def generic_visit(self, node):
        super().generic_visit(node)
        other = f"{self.name}_gone"
        match node:
            case ast.Attribute(attr=name) if name == self.name:
                node.attr = other
            case ast.Name(id=name) if name == self.name and self.is_global:
                node.id = other
            case ast.alias(name=name) if name == self.name:
                node.asname = other
            case ast.ClassDef(name=name) if name == self.name:
                node.name = other
            case ast.ClassDef(body=body):
                for each in body:
                    match each:
                        case ast.FunctionDef(name=name) if name == self.name:
                            each.name = other
                        case ast.AnnAssign(target=ast.Name(id=name)) if name == self.name:
                            each.target.id = other
        return node


class Loader(SourceFileLoader):
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        for name in NAMES.split(","):
            tree = Renaming(name, tree).visit(tree)
        return compile(ast.fix_missing_locations(tree), path, "exec")


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
