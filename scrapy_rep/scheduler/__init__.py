"""Keeps requests as long as they have to wait, in memory, on disk or in Redis.

Scrapy's scheduler pushes requests to ``priority_queue`` and pops them from there. The admission
says whether a request may leave the scheduler, and ``lanes`` has the requests, and the order of the
download slots.
"""
