"""Effort: the work that one answer may take, whatever rules and URLs a site makes up."""

from __future__ import annotations

from scrapy_rep.protocol.limits import MAX_EFFORT


class TooCostlyError(Exception):
    """An answer takes more work than it is given."""


class Effort:
    """What is left for one answer, about all forms of a URL, in steps of a microsecond or so."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_EFFORT

    def spend(self, steps: int) -> None:
        """Take steps off. Raises TooCostlyError where none are left."""
        self._left -= steps
        if self._left < 0:
            raise TooCostlyError
