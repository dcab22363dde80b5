"""What the crawl did about robots.txt, as a page or as evidence: REP_REPORT."""

from scrapy_rep.report.extension import Report

__all__ = ["Report"]
