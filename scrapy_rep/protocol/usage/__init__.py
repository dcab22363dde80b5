"""Preferences about use: what a site wants to be done, or not, with a page that is fetched.

The lines of a crawler's groups become ``UsageRules`` (``rules.py``), which give the ``Usage`` of a
target; each kind of statement has a reader of its own, and ``statement.py`` says what they mean.
"""
