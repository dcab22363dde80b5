"""Which of many rules decides about a target (RFC 9309 §2.2.2).

A ``RuleSet`` asks ``Literals`` and ``Wildcards``; both use what is below them, and nothing above.
"""
