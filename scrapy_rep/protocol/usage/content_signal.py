"""Content-Signal: pairs such as ``ai-train=no``, separated by commas. It has no formal grammar."""

from typing import Final

from scrapy_rep.protocol.usage.statement import ALLOW, DISALLOW, UNKNOWN, Value, strictest_value

LABELS: Final = ("search", "ai-input", "ai-train")
OTHERS: Final = ("use",)
"""Known keys that are about none of PURPOSES."""
VALUES: Final[dict[str, Value]] = {"yes": ALLOW, "no": DISALLOW}


def pairs_of(statement: bytes) -> list[tuple[str, str]]:
    """Return the pairs of key and value in lower case; text without ``=`` is skipped.

    In keys, ``_`` is replaced by ``-``.
    """
    pairs = (
        pair.partition("=") for pair in statement.decode("utf-8", "replace").lower().split(",")
    )
    return [
        (key.strip().replace("_", "-"), value.strip()) for key, equals, value in pairs if equals
    ]


def read_signals(statement: bytes) -> dict[str, Value]:
    """Return the values of LABELS in a statement; invalid pairs are skipped.

    Of several values of a label, the restrictive one is returned.
    """
    values: dict[str, Value] = {}
    for key, value in pairs_of(statement):
        if key in LABELS and value in VALUES:
            values[key] = strictest_value((values.get(key, UNKNOWN), VALUES[value]))
    return values
