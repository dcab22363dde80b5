"""The limit of work for one verdict, so that no combination of rules and URL takes too long."""

from __future__ import annotations

from scrapy_rep.protocol.limits import MAX_EFFORT


class TooCostlyError(Exception):
    """A verdict requires more steps than the limit."""


class Effort:
    """The budget of steps for the verdict on all spellings of a URL; a step takes about 1 µs."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_EFFORT

    def spend(self, steps: int) -> None:
        """Subtract ``steps`` from the budget. Raises TooCostlyError if fewer steps are left."""
        self._left -= steps
        if self._left < 0:
            raise TooCostlyError
