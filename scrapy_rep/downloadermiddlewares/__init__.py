"""The middlewares that let requests pass or wait, return them to the scheduler, or drop them.

``robotstxt`` gets the decision on a request, and does what the table in ``transitions`` defines. It
uses the parts that ``composition`` builds for each crawl. ``guard``, the middleware closest to the
downloader, checks the request that is sent, and the response that arrives. ``responses``, the
middleware closest to the engine, checks the response that a callback gets.
"""
