"""Readers of settings check and convert a value, which may be text, as from the command line."""

import math
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple


class NotTakenError(ValueError):
    """Raised for an invalid value. The message says what the setting takes."""


class Reader(NamedTuple):
    """A function that reads a value, and a description of the values that it accepts.

    It raises ValueError, TypeError or OverflowError, or NotTakenError with another description.
    """

    takes: str
    read: Callable[[Any], Any]


def number(unit: str, *, low: float, above: bool = False, high: float = math.inf) -> Reader:
    """Return a reader of finite numbers, not booleans: from, or ``above``, ``low`` to ``high``."""

    def read(value: Any) -> float:
        if isinstance(value, bool):
            raise TypeError
        found = float(value)
        if not math.isfinite(found) or not low <= found <= high or (above and found == low):
            raise ValueError
        return found

    bound = f" above {low:g}" if above else f", {low:g} or more"
    if high < math.inf:
        bound = f" from {low:g} to {high:,.0f}"
    return Reader(f"a number of {unit}{bound}", read)


def integer(unit: str, low: int) -> Reader:
    """Return a reader of whole numbers, not booleans, from ``low`` on."""

    def read(value: Any) -> int:
        found = int(value)
        is_whole = isinstance(value, str) or value == found
        # As a float: one that is too large for that raises OverflowError.
        if isinstance(value, bool) or not is_whole or float(found) < low:
            raise ValueError
        return found

    return Reader(f"a whole number of {unit}, {low} or more", read)


def _read_boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in {"1", "true", "0", "false"}:
        raise ValueError
    return text in {"1", "true"}


boolean: Final = Reader("True or False", _read_boolean)


def one_of(*choices: str) -> Reader:
    """Return a reader of one of ``choices``."""
    *others, last = map(repr, choices)
    takes = f"{', '.join(others)} or {last}"

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Reader(takes, read)


def several_of(choices: Sequence[str]) -> Reader:
    """Return a reader of a list of ``choices``, or text with commas: a tuple with each once."""
    takes = f"a list of {', '.join(map(repr, choices))}"

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

    return Reader(takes, read)


def closest(value: Any, choices: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar of ``choices``, or None. ``cutoff`` is the least similarity, to 1."""
    by_key = {choice.lower(): choice for choice in choices}
    similar = get_close_matches(str(value).strip().lower(), by_key, n=1, cutoff=cutoff)
    return by_key[similar[0]] if similar else None
