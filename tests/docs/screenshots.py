"""The screenshots of the report in the docs: ``python -m tests.docs.screenshots``, as root.

It crawls sites on port 80 of loopback, so that their URLs are as on the web.
"""

import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from scrapy.crawler import CrawlerProcess
from scrapy.utils.reactor import install_reactor

from tests.crawling.crawl import ADDON, Crawl, ListSpider
from tests.docs.blocks import ROOT
from tests.extensions.report.browser import Page, find_browser
from tests.host_names import resolve_to_loopback

SITES = {
    "shop.example": (200, "User-agent: *\nDisallow: /cart\nDisallow: /*?sort=\n"),
    "news.example": (200, "User-agent: mybot\nDisallow: /archive\nCrawl-delay: 0.1\n"),
    "docs.example": (404, ""),
    "wiki.example": (200, "User-agent: *\nAllow: /\n"),
    "api.example": (503, ""),
}
PATHS = {
    "shop.example": ["", "a", "b", "c", *(f"list?sort={n}" for n in range(12)), "cart"],
    "news.example": ["", "today", *(f"archive/{n}" for n in range(7))],
    "docs.example": ["", "guide", "faq"],
    "wiki.example": ["", "Robots", "Spider", "Web"],
    "api.example": ["v1", "v2"],
}
WIDTH, HEIGHT = 1100, 740


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        status, text = SITES[self.headers["Host"]]
        if self.path != "/robots.txt":
            status, text = 200, self.path
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


def crawl(path):
    settings = {
        "ADDONS": ADDON,
        "LOG_LEVEL": "WARNING",
        "REP_REPORT": str(path),
        "REP_STORE": "memory://",
        "REP_DEFER_TIMEOUT": 0,
        "TELNETCONSOLE_ENABLED": False,
        "USER_AGENT": "mybot/1.0 (+https://mybot.example)",
    }
    urls = [f"http://{host}/{path}" for host, paths in PATHS.items() for path in paths]
    process = CrawlerProcess(settings)
    process.crawl(type("Spider", (ListSpider,), {"name": "myspider"}), urls, Crawl())
    process.start()


def main():
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    server = ThreadingHTTPServer(("127.0.0.1", 80), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        report = Path(folder) / "report.html"
        with pytest.MonkeyPatch.context() as patch:
            names = resolve_to_loopback(patch)
            next(names)
            crawl(report)
        page = Page(find_browser())
        for scheme in ("light", "dark"):
            page.open(report)
            path = ROOT / "docs" / "_static" / f"report-{scheme}.png"
            page.look(path, WIDTH, HEIGHT, scheme, whole=False)
            print(path.relative_to(ROOT))
        page.close()


if __name__ == "__main__":
    main()
