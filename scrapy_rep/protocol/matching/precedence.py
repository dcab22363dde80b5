"""Which of two rules that match decides (RFC 9309 §2.2.2, SPEC M-4)."""

from __future__ import annotations

Deciding = tuple[str, int]
"""A rule's canonical pattern and its word: twice its line number, plus one for ``Allow``."""


def precedence(rule: Deciding) -> tuple[int, int, int]:
    """Return a sort key: octets of the pattern, whether it allows, and the order of the file."""
    pattern, word = rule
    return len(pattern), word & 1, -word
