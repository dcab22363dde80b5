"""Decides about a request, by overrides and by the rules of its origin, for all forms of its URL.

The ``decider`` is asked; it asks the names of the crawler, the overrides, the spellings and the
cache.
"""
