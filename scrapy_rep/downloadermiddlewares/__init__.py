"""The middlewares that let requests pass or wait, return them to the scheduler, or drop them.

``robotstxt`` gets the decision on a request, and does what the ``gate`` answers, with the
parts that ``crawl_parts`` builds for each crawl. ``wire`` is called in place of the download
handler. ``fetch_and_response`` has the middleware closest to the downloader, which protects
requests for robots.txt, and that closest to the engine: both check the URLs of responses.
"""
