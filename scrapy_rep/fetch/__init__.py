"""Fetches robots.txt. Every error becomes an outcome, and is not raised.

``fetcher`` follows the redirects and sends the requests; the answers come back through ``guard`` of
the downloader middlewares. ``route`` tells which of them are not the origin's own.
"""
