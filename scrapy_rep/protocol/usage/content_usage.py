"""Content-Usage, a Dictionary of RFC 9651, which is parsed by ``http-sf``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from scrapy_rep.protocol.usage.statement import ALLOW, DISALLOW, UNKNOWN

if TYPE_CHECKING:
    from scrapy_rep.protocol.usage.statement import Value

LABELS: Final = ("train-ai", "ai-use", "search")
"""Categories of draft-ietf-aipref-vocab-08; revision 07 has no ``ai-use``."""
RETIRED: Final = frozenset(
    {"tdm", "ai", "genai", "inference", "all", "bots", "train-genai", "ai-output"}
)
"""Categories of earlier revisions, which are still in use and are ignored."""
_VALUES: Final[dict[str, Value]] = {"y": ALLOW, "n": DISALLOW}


class NotADictionaryError(ValueError):
    """The statement is not valid by RFC 9651, and is ignored as a whole."""


def values_by_label(statement: bytes) -> dict[str, Value]:
    """Return the values of all labels in a statement, not only of LABELS.

    Raises NotADictionaryError.
    """
    # Imported late, as few files have such lines.
    from http_sf import Token, parse

    try:
        members = parse(statement.strip(), tltype="dictionary")
    except ValueError as error:
        raise NotADictionaryError(str(error)) from None
    values: dict[str, Value] = {}
    for label, member in cast("dict[str, Any]", members).items():
        item = member[0] if isinstance(member, tuple) else member
        values[label] = _VALUES.get(str(item), UNKNOWN) if isinstance(item, Token) else UNKNOWN
    return values


def read_usage(statement: bytes) -> dict[str, Value]:
    """Return the values of LABELS in a statement; none if it is not valid."""
    try:
        values = values_by_label(statement)
    except NotADictionaryError:
        return {}
    return {label: values[label] for label in LABELS if label in values}
