"""Spiders and middlewares of the stacks, named in settings by their paths."""

from __future__ import annotations

from copy import deepcopy
from urllib.parse import urlencode

import scrapy

from tests.crawling.crawl import ListSpider, OfCrawler


class StackSpider(ListSpider):
    """Fetches the requests it is given, as a spider does that asks for nothing special."""

    handle_httpstatus_list = (403, 404, 407, 502)

    def prepare(self, request):
        if isinstance(request, str):
            request = scrapy.Request(request)
        return request.replace(callback=self.parse, errback=self.failed)


class MediaSpider(StackSpider):
    """Yields what it is given as an item for the media pipelines."""

    def parse(self, response):
        self.crawl.responses.append(response)
        yield dict(self.settings["ITEM"])


class MetaOnAll(OfCrawler):
    def process_request(self, request, spider=None):
        for name, value in self.settings.getdict("META_ON_ALL").items():
            request.meta.setdefault(name, deepcopy(value))


class AgentOnAll(OfCrawler):
    """Sets the User-Agent of every request to AGENT_ON_ALL, whatever it has been."""

    def process_request(self, request, spider=None):
        request.headers["User-Agent"] = self.settings["AGENT_ON_ALL"]


class ThroughAPI(OfCrawler):
    """Sends every request to the API at API_URL, which is given its URL."""

    def process_request(self, request, spider=None):
        api = self.settings["API_URL"]
        if request.url.startswith(api):
            return None
        return request.replace(url=f"{api}/?{urlencode({'url': request.url})}")


try:
    from scrapy_poet import DummyResponse
    from web_poet import HttpClient, WebPage
except ImportError:
    pass
else:

    class Page(WebPage):
        """A page object, of a page that was downloaded."""

    class PoetSpider(StackSpider):
        def parse(self, response, page: Page, client: HttpClient):
            self.crawl.responses.append(response)

    class PoetDummySpider(StackSpider):
        def parse(self, response: DummyResponse):
            self.crawl.responses.append(response)


try:
    from spidermon import MonitorSuite
    from spidermon.contrib.scrapy import monitors
except ImportError:
    pass
else:

    class Monitors(MonitorSuite):
        """Those of spidermon that look at requests and the log."""

        monitors = (
            monitors.ErrorCountMonitor,
            monitors.WarningCountMonitor,
            monitors.UnwantedHTTPCodesMonitor,
            monitors.RetryCountMonitor,
            monitors.DownloaderExceptionMonitor,
        )
