"""A report of what was counts."""

CRAWL = {
    "spider": "list", "finished": "2026-11-22T08:11:27.182Z", "finish_reason": "finished",
    "dry_run": False, "tokens": ["testbot"], "purposes": [], "allowed": 4, "dropped": 3,
    "would_drop": 0, "deferred": 0, "would_defer": 0, "hosts_with_delay": 0,
    "seconds_with_delays": 0,
    "started": "2026-11-22T08:10:27.182Z", "fetches": 5, "responses": 7, "nofollow": 0,
    "noindex": 0, "too_many_tags": 0, "subresources_forbidden": 0, "subresources_unknown": 0,
}  # fmt: skip
MADE = {
    "versions": {"scrapy-rep": "1.0", "Scrapy": "2.19.0", "Python": "3.13.1"},
    "settings": {"REP_TIMEOUT": 7.0},
}


def report_of(counts, made=MADE, **crawl):
    return {"crawl": {**CRAWL, **crawl}, **made, **counts.as_dict()}
