"""Holds requests until robots.txt is known, while it is unreachable, and for the delays of sites.

Scrapy's scheduler pushes requests to ``queue`` and pops them from there. ``gate`` decides whether a
request may leave the scheduler, ``waiting_lanes`` keeps track of the requests that may not, and
``slot_order`` decides which download slot is next.
"""
