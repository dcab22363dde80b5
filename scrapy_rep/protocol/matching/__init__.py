"""Finds the rule that decides on a target among many rules (RFC 9309 §2.2.2).

A ``RuleSet`` has the patterns without a ``*`` inside in ``Literals``, and all others in
``Wildcards``.
"""
