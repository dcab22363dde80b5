"""Crawlee for Python, which follows all links: ``python crawlee_acid.py URL``."""

import asyncio
import sys

from crawlee.crawlers import BeautifulSoupCrawler
from crawlee.http_clients import ImpitHttpClient


async def main():
    crawler = BeautifulSoupCrawler(
        respect_robots_txt_file=True,
        http_client=ImpitHttpClient(verify=False, headers={"User-Agent": "demobot/1.0"}),
    )

    @crawler.router.default_handler
    async def follow(context):
        await context.enqueue_links(strategy="all")

    await crawler.run(sys.argv[1:])


asyncio.run(main())
