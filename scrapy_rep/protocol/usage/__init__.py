"""Usage preferences: for which purposes a site allows the use of its pages, such as AI training.

A statement is one preference for one page, as written in robots.txt, a header or a meta
element. A ``Usage`` has all statements for a page. ``UsageRules`` (``rules.py``) are the lines
of robots.txt for a crawler, from which the ``Usage`` of a target is read. ``readers.py`` reads the
specifications. ``statement.py`` defines for which purposes a statement counts.
"""
