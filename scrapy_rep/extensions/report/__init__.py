"""What the crawl did about robots.txt, as a page or as evidence: REP_REPORT."""

from scrapy_rep.extensions.report.extension import RobotsReport

__all__ = ["RobotsReport"]
