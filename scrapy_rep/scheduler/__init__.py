"""Holds requests back until it is known what robots.txt says of them, and as long as it asks.

``queue`` is what Scrapy's scheduler pushes to and pops from; it asks the ``gate`` which origins are
open, and ``slot_order`` which download slot is next.
"""
