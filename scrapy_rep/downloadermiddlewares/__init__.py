"""Let requests pass or wait, return them to the scheduler, or drop them.

``robotstxt`` has the decision made and acts on it by the table of ``transitions``, with the parts
that ``composition`` builds for each crawl; ``guard``, next to the downloader, is the last to see
what is sent and the first to see what comes; ``responses``, next to the engine, the last to see
what callbacks get.
"""
