"""The report of a crawl, as HTML or JSON (REP_REPORT)."""
