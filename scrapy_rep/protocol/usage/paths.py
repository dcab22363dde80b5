"""Paths of statements about use, matched as those of Allow and Disallow."""

from __future__ import annotations

from scrapy_rep.protocol.matching.wildcards import matches


def is_match(pattern: str, target: str) -> bool:
    """Say whether a canonical pattern, which may be empty, matches a canonical target."""
    if "*" in pattern:
        return matches(pattern, target)
    # A canonical target has no raw $ of its own.
    return target.startswith(pattern) or f"{target}$" == pattern
