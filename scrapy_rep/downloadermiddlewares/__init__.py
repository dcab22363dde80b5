"""What becomes of a request: it passes, waits, goes back to the scheduler or is dropped.

``robotstxt`` has the decision made and acts on it by the table of ``transitions``, with the parts
that ``composition`` builds for each crawl; ``guard``, next to the downloader, is the last to see
what is sent and the first to see what comes.
"""
