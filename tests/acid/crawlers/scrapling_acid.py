"""Scrapling, which follows all links: ``python scrapling_acid.py URL``."""

import sys

from scrapling.fetchers import FetcherSession
from scrapling.spiders import Spider


class AcidSpider(Spider):
    name = "acid"
    start_urls = sys.argv[1:]
    robots_txt_obey = True

    def configure_sessions(self, manager):
        agent = {"User-Agent": "demobot/1.0"}
        manager.add(
            "default",
            FetcherSession(
                headers=agent,
                verify=False,
                stealthy_headers=False,
                follow_redirects=True,  # by default not to private addresses, as those of this web
            ),
        )

    async def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


AcidSpider().start()
