"""Fetches robots.txt. After an error the outcome is ``Unreachable``; the error is not raised.

``fetcher`` sends the requests and follows the redirects. It gets the responses from the downloader
middleware in ``downloadermiddlewares/robotstxt_fetch.py``. ``obstacles`` determines which
responses and errors do not come from the origin, but from a proxy, a service or a component of the
crawl.
"""
