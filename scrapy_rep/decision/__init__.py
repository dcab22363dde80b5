"""Decides on requests: by an override, or by the rules of the origin, for all forms of the URL.

Other packages use ``Decider``. It uses the other modules of this package, the overrides and the
cache.
"""
