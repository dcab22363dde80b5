"""Holds requests until robots.txt is known, while it is unreachable, and for the delays of sites.

``queue`` is what Scrapy's scheduler pushes to and pops from. It asks the ``gate`` whether a request
may leave, ``waiting`` remembers what may not, and ``slot_order`` knows which download slot is next.
"""
