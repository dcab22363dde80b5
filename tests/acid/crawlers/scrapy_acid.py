"""Follows all links: ``scrapy runspider scrapy_acid.py -a start=URL``."""

import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


class AcidSpider(scrapy.Spider):
    name = "acid"
    links = LinkExtractor()

    async def start(self):
        yield scrapy.Request(self.start_url)

    def __init__(self, start, **kwargs):
        super().__init__(**kwargs)
        self.start_url = start

    def parse(self, response):
        if isinstance(response, HtmlResponse):
            for link in self.links.extract_links(response):
                yield scrapy.Request(link.url)
