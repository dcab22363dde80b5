"""TDM Reservation Protocol: tdmrep.json, headers and meta elements."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.limits import MAX_TAG_TEXT
from scrapy_rep.protocol.usage.paths import is_match
from scrapy_rep.protocol.usage.statement import (
    ALLOW,
    DISALLOW,
    TDMREP,
    TDMREP_JSON,
    UNKNOWN,
    statements_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy_rep.protocol.usage.statement import Statement, Value

RESERVATION: Final = "tdm-reservation"
POLICY: Final = "tdm-policy"
_VALUES: Final[dict[str, Value]] = {"1": DISALLOW, "0": ALLOW}


def tdm_in(label: str, values: Sequence[str], place: str) -> list[Statement]:
    """Return what a header, or a meta element, with a name of TDMRep says.

    Of several values, which the report doesn't know, the restrictive one comes to count. Too many
    reserve: never less than what they may say.
    """
    if label == RESERVATION and sum(map(len, values)) > MAX_TAG_TEXT:
        return _said(label, "1", values[0], place)
    return [
        statement
        for value in values
        for item in (value.split(",") if label == RESERVATION else [value])
        for statement in _said(label, item.strip(), item.strip(), place)
    ]


def tdm_in_file(body: bytes, target: str) -> list[Statement]:
    """Return what a tdmrep.json says of a target, in canonical form; any bytes will do.

    The first of its objects decides whose location matches.
    """
    try:
        rules = json.loads(body)
    except (ValueError, RecursionError):
        rules = None
    if not isinstance(rules, list):
        return statements_of(TDMREP, {}, body.decode("utf-8", "replace"), None, TDMREP_JSON)
    for rule in rules:
        if isinstance(rule, dict) and _matches(rule.get("location"), target):
            raw = json.dumps(rule)
            said = _said(RESERVATION, _text(rule.get(RESERVATION)), raw, TDMREP_JSON)
            policy = rule.get(POLICY)
            if isinstance(policy, str):
                said += _said(POLICY, policy, policy, TDMREP_JSON)
            return said
    return []


def _said(label: str, value: str, raw: str, place: str) -> list[Statement]:
    read = _VALUES.get(value, UNKNOWN) if label == RESERVATION else UNKNOWN
    return statements_of(TDMREP, {label: read}, raw, None, place)


def _text(value: Any) -> str:
    return "" if isinstance(value, bool) else str(value)


def _matches(location: Any, target: str) -> bool:
    if not isinstance(location, str) or not location.startswith(("/", "*")) or "\n" in location:
        return False
    return is_match(canonical_patterns(location.encode("utf-8", "surrogatepass")), target)
