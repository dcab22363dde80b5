"""The middlewares that let requests pass or wait, return them to the scheduler, or drop them.

``robotstxt`` gets the decision on a request, and does what the table in ``actions`` defines, with
the parts that ``crawl_parts`` builds for each crawl. ``wire`` is called in place of the download
handler. ``first_and_last`` has the first and the last middleware: they protect requests for
robots.txt, and check the URL of a response.
"""
