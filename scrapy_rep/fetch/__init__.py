"""Downloads robots.txt, to an outcome: whatever goes wrong is one, nothing is raised.

``fetcher`` follows the redirects and sends the requests; the answers come back through ``guard`` of
the downloader middlewares. ``route`` tells which of them are not the origin's own.
"""
