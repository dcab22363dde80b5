"""Content-Usage, a Dictionary of RFC 9651, which is parsed by ``http-sf``."""

from typing import Any, Final, cast

from scrapy_rep.protocol.usage.statement import ALLOW, DISALLOW, UNKNOWN, Value

LABELS: Final = ("train-ai", "ai-use", "search")
"""The categories of draft-ietf-aipref-vocab-08. Revision 07 has no ``ai-use``."""
RETIRED: Final = frozenset(
    {"tdm", "ai", "genai", "inference", "all", "bots", "train-genai", "ai-output"}
)
"""Categories of earlier revisions. Some sites still have them; they are ignored."""
_VALUES: Final[dict[str, Value]] = {"y": ALLOW, "n": DISALLOW}


class NotADictionaryError(ValueError):
    """The statement is no Dictionary of RFC 9651, so all of it is ignored."""


def values_by_label(statement: bytes) -> dict[str, Value]:
    """Return the values of all labels in a statement, not only of LABELS.

    Raises NotADictionaryError if the statement is not valid by RFC 9651.
    """
    # Imported here to save time and memory, as few files have lines with Content-Usage.
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
    """Return the values of LABELS in a statement; an empty dict if it is not valid."""
    try:
        values = values_by_label(statement)
    except NotADictionaryError:
        return {}
    return {label: values[label] for label in LABELS if label in values}
