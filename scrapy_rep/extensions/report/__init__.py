"""The report of a crawl, as HTML or JSON (REP_REPORT)."""

from scrapy_rep.extensions.report.extension import RobotsReport

__all__ = ["RobotsReport"]
