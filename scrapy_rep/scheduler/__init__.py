"""Holds requests until robots.txt is known, while it is unreachable, and for the delays of sites.

``queue`` is what Scrapy's scheduler pushes to and pops from; it asks the ``gate`` which origins are
open, and ``slot_order`` which download slot is next.
"""
