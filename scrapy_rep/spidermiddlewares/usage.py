"""The spider middleware that reads the usage preferences of a page, and obeys them."""

from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import stats
from scrapy_rep.decision.usage import UsageJudge, store_judgement, stored_judgement
from scrapy_rep.exceptions import describe_results
from scrapy_rep.protocol.usage import DISALLOW, HEADERS, Usage, judge
from scrapy_rep.spidermiddlewares.base import PageMiddleware
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request

ITEM_FIELD: Final = "robots_usage"
"""Field of items that is set to the results for their page, by purpose."""


class RobotsUsageMiddleware(PageMiddleware):
    """Drops or marks items by the preferences in robots.txt, headers and meta elements."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._judge = UsageJudge.of(crawler)

    def process_spider_input(self, response: Response) -> None:
        """If the meta has a judgement of robots.txt, judge the page, too, and replace it."""
        request = response.request
        values = stored_judgement(request)
        if request is None or values is None:
            return
        usage = Usage.from_dict(values)
        for name in HEADERS:
            usage = usage.with_header(name, response.headers.getlist(name))
        judgement = judge(usage.with_meta(self._meta_elements(response)), values["results"])
        store_judgement(request, judgement)
        self._judge.report(request, judgement)
        if judgement.refused and not self._judge.drops_items:
            LimitedLogger(__name__, self.crawler).info(
                "Usage preferences disallow a declared use (%s): %s",
                describe_results(judgement.results),
                printable_request(request),
            )

    def get_processed_item(self, item: Any, response: Response | None) -> Any:
        """Drop or mark ``item`` by the judgement of its page, if any; a dry run drops no items."""
        values = stored_judgement(None if response is None else response.request)
        if values is None:
            return item
        results = values["results"]
        if self._judge.drops_items and DISALLOW in results.values():
            why = f"usage preferences, {describe_results(results)}"
            if not self._options.dry_run:
                stats.count(self.crawler, stats.USAGE_ITEMS_DROPPED)
            return self._drop_item(item, response, why)
        return self._mark_item(item, response, ITEM_FIELD, dict(results))
