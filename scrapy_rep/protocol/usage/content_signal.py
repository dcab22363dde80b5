"""Content-Signal: pairs separated by commas. There is no formal grammar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scrapy_rep.protocol.usage.statement import ALLOW, DISALLOW, UNKNOWN, combined

if TYPE_CHECKING:
    from scrapy_rep.protocol.usage.statement import Value

LABELS: Final = ("search", "ai-input", "ai-train")
OTHERS: Final = ("use",)
"""Known keys that are about none of our purposes."""
VALUES: Final[dict[str, Value]] = {"yes": ALLOW, "no": DISALLOW}


def pairs_of(statement: bytes) -> list[tuple[str, str]]:
    """Return the pairs in lower case, with ``-`` for ``_`` in keys; other text is skipped."""
    pairs = (
        pair.partition("=") for pair in statement.decode("utf-8", "replace").lower().split(",")
    )
    return [
        (key.strip().replace("_", "-"), value.strip()) for key, equals, value in pairs if equals
    ]


def read_signals(statement: bytes) -> dict[str, Value]:
    """Return the values of LABELS in a statement; invalid pairs are skipped."""
    values: dict[str, Value] = {}
    for key, value in pairs_of(statement):
        if key in LABELS and value in VALUES:
            values[key] = combined((values.get(key, UNKNOWN), VALUES[value]))
    return values
