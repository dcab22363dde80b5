"""Judges a request: by an override or by the rules of its origin, under every spelling of its URL.

The ``decider`` is asked; it asks the names of the crawler, the overrides, the spellings and the
cache.
"""
