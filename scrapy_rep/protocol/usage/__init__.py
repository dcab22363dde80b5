"""Usage preferences: what a site allows to be done with its pages.

``UsageRules`` (``rules.py``) are the lines of the groups for a crawler, and return the ``Usage`` of
a target. Each kind of statement has a reader in a module of its own. ``statement.py`` defines for
which purposes a statement counts.
"""
