"""The names of the stats."""

from typing import Final

from scrapy.crawler import Crawler

# Stats that Scrapy's built-in middleware has, too.
FORBIDDEN: Final = "robotstxt/forbidden"
REQUEST_COUNT: Final = "robotstxt/request_count"
RESPONSE_COUNT: Final = "robotstxt/response_count"
RESPONSE_STATUS_COUNT: Final = "robotstxt/response_status_count/{status}"
EXCEPTION_COUNT: Final = "robotstxt/exception_count/{exception}"

# Stats that only scrapy-rep has.
FORBIDDEN_REASON_COUNT: Final = "robotstxt/forbidden_reason_count/{reason}"
UNREACHABLE_DROPPED: Final = "robotstxt/unreachable_dropped"
FORBIDDEN_RESPONSE_COUNT: Final = "robotstxt/forbidden_response_count"
FORBIDDEN_START_COUNT: Final = "robotstxt/forbidden_start_count"
REDIRECT_COUNT: Final = "robotstxt/redirect_count"
NOT_OF_ORIGIN_COUNT: Final = "robotstxt/not_of_origin_count"
OUTCOME_COUNT: Final = "robotstxt/outcome_count/{kind}"
UNREACHABLE_COUNT: Final = "robotstxt/unreachable_count/{cause}"
RESPONSE_BYTES: Final = "robotstxt/response_bytes"
WAITED: Final = "robotstxt/waited"
RETURNED: Final = "robotstxt/returned_to_scheduler"
STORE_FOUND: Final = "robotstxt/store/found"
MEMORY_MISSES: Final = "robotstxt/memory/misses"
STORE_WAITED: Final = "robotstxt/store/waited_for_other_worker"
ERROR_COUNT: Final = "robotstxt/error_count"
DEFERRED: Final = "robotstxt/deferred"
DEFERRED_WAITING: Final = "robotstxt/deferred_waiting"
DEFERRED_DROPPED: Final = "robotstxt/deferred_dropped"
QUEUE_UNREADABLE: Final = "robotstxt/queue/unreadable"
QUEUE_ERRORS: Final = "robotstxt/queue/error_count"
CRAWL_DELAY: Final = "robotstxt/crawl_delay"
BACK_OFF: Final = "robotstxt/back_off"
BACK_OFF_DROPPED: Final = "robotstxt/back_off_dropped"
CRAWL_DELAY_CAPPED: Final = "robotstxt/crawl_delay_capped"
EXEMPT: Final = "robotstxt/exempt"
TURNS: Final = "robotstxt/turns"
OVERRIDE_COUNT: Final = "robotstxt/override_count/{policy}"
DRY_RUN_FORBIDDEN: Final = "robotstxt/dry_run/forbidden"
DRY_RUN_DEFERRED: Final = "robotstxt/dry_run/deferred"
DRY_RUN_REASON_COUNT: Final = "robotstxt/dry_run/forbidden_reason_count/{reason}"
DRY_RUN_HOSTS_WITH_DELAY: Final = "robotstxt/dry_run/hosts_with_delay"
DRY_RUN_SECONDS: Final = "robotstxt/dry_run/seconds_with_delays"
TAGS_NOFOLLOW: Final = "robotstxt/tags/nofollow"
TAGS_NOINDEX: Final = "robotstxt/tags/noindex"
TAGS_TOO_MANY: Final = "robotstxt/tags/too_many"
TAGS_UNREADABLE: Final = "robotstxt/tags/unreadable"
USAGE_COUNT: Final = "robotstxt/usage_count/{purpose}/{result}"
USAGE_DISALLOWED: Final = "robotstxt/usage_disallowed"
USAGE_ITEMS_DROPPED: Final = "robotstxt/usage_items_dropped"
REFUSED_COUNT: Final = "robotstxt/refused_count/{status}"
EVIDENCE_LOST: Final = "robotstxt/evidence/lost"
SUBRESOURCE_FORBIDDEN: Final = "robotstxt/subresource/forbidden"
SUBRESOURCE_UNKNOWN: Final = "robotstxt/subresource/unknown"


def value(crawler: Crawler, name: str) -> int:
    """Return the value of the stat ``name`` of a crawl; 0 if it was not counted."""
    return 0 if crawler.stats is None else int(crawler.stats.get_value(name, 0))


def count(crawler: Crawler, name: str, by: int = 1) -> None:
    """Add ``by`` to the stat ``name`` of a crawl."""
    if (collector := crawler.stats) is not None:
        collector.inc_value(name, by)
