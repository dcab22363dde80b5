"""Crawl4AI without a browser, which follows all links: ``python crawl4ai_acid.py URL``."""

import asyncio
import os
import sys
from pathlib import Path

os.environ["CRAWL4_AI_BASE_DIRECTORY"] = str(Path.cwd())  # it keeps robots.txt there for a week

from crawl4ai import AsyncWebCrawler, BrowserConfig, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy

AGENT = "demobot/1.0"


async def main():
    pages = HTTPCrawlerConfig(headers={"User-Agent": AGENT}, verify_ssl=False)
    config = CrawlerRunConfig(
        check_robots_txt=True,
        cache_mode=CacheMode.BYPASS,
        deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=20, include_external=True),
    )
    async with AsyncWebCrawler(
        crawler_strategy=AsyncHTTPCrawlerStrategy(pages), config=BrowserConfig(user_agent=AGENT)
    ) as crawler:
        await crawler.arun(sys.argv[1], config=config)


asyncio.run(main())
