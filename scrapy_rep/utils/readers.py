"""Readers of settings: functions that check and convert a Python value, or a string.

Strings come from the command line. A reader returns the converted value. It raises ValueError,
TypeError or OverflowError if the value is not valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any, Final

_TRUE: Final = {"1", "true"}
_FALSE: Final = {"0", "false"}


def number(*, low: float, above: bool = False) -> Callable[[Any], float]:
    """Return a reader of finite numbers of at least ``low``; with ``above``, more than ``low``."""

    def read(value: Any) -> float:
        if isinstance(value, bool):
            raise TypeError
        found = float(value)
        if not math.isfinite(found) or found < low or (above and found == low):
            raise ValueError
        return found

    return read


def integer(low: int, high: float = math.inf) -> Callable[[Any], int]:
    """Return a reader of whole numbers from ``low`` to ``high``."""

    def read(value: Any) -> int:
        found = int(value)
        if not isinstance(value, str) and value != found:
            raise ValueError
        if isinstance(value, bool) or not low <= found <= high:
            raise ValueError
        return found

    return read


def boolean(value: Any) -> bool:
    """Return ``value`` as a bool. It may be True or False, 1 or 0, or one of these as a string."""
    text = str(value).lower()
    if text not in _TRUE | _FALSE:
        raise ValueError
    return text in _TRUE


def one_of(*choices: str) -> Callable[[Any], str]:
    """Return a reader of a string that is one of ``choices``."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return read


def several_of(choices: Sequence[str]) -> Callable[[Any], tuple[str, ...]]:
    """Return a reader of a list of some ``choices``, or of a string with commas between them."""

    def read(value: Any) -> tuple[str, ...]:
        if not isinstance(value, str | list | tuple):
            raise TypeError
        names = value.split(",") if isinstance(value, str) and value else value
        if not all(isinstance(name, str) for name in names):
            raise TypeError
        found = tuple(dict.fromkeys(name.strip() for name in names))
        if not set(found) <= set(choices):
            raise ValueError
        return found

    return read


def describe_list_of(choices: Sequence[str]) -> str:
    """Return a description, for messages, of the values that ``several_of(choices)`` accepts."""
    return f"a list of {', '.join(map(repr, choices))}"


def path(value: Any) -> str | None:
    """Return ``value``, a path, as a string; None if ``value`` is None or empty."""
    if value is None or value == "":
        return None
    if not isinstance(value, str | PathLike):
        raise TypeError
    if "\0" in (found := str(fspath(value))):
        raise ValueError
    return found
