"""TDM Reservation Protocol: tdmrep.json, headers and meta elements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from scrapy_rep.protocol.canonical import canonical_patterns
from scrapy_rep.protocol.limits import MAX_TAG_TEXT, MAX_USAGE_BYTES
from scrapy_rep.protocol.matching.wildcards import is_match
from scrapy_rep.protocol.usage.statement import (
    ALLOW,
    DISALLOW,
    TDMREP,
    TDMREP_JSON,
    UNKNOWN,
    Statement,
    Value,
    statements_of,
)

TDMREP_PATH: Final = "/.well-known/tdmrep.json"
"""The path of tdmrep.json on each origin."""
RESERVATION: Final = "tdm-reservation"
POLICY: Final = "tdm-policy"
_RESERVED: Final = "1"
_VALUES: Final[dict[str, Value]] = {_RESERVED: DISALLOW, "0": ALLOW}
_TOO_LONG: Final = f"a tdmrep.json of more than {MAX_USAGE_BYTES:,} bytes"


def tdm_in(label: str, values: Sequence[str], place: str) -> list[Statement]:
    """Return the statements in the values of a TDMRep header or meta element.

    By the specification there is one value. Each of several values, also of those that commas
    separate in a reservation, is a statement, so that the restrictive one counts. Values other
    than 0 and 1 are unknown. Reservations that are too long to be read count as one ``1``.
    """
    if label == RESERVATION and sum(map(len, values)) > MAX_TAG_TEXT:
        return _statements(label, _RESERVED, values[0], place)
    return [
        statement
        for value in values
        for item in (value.split(",") if label == RESERVATION else [value])
        for statement in _statements(label, item.strip(), item.strip(), place)
    ]


class TdmRules:
    """The rules of a tdmrep.json.

    ``body`` may be any bytes. The first object whose location matches a target decides; those
    without a valid location are ignored. If the file is no JSON array, all targets have a statement
    with the value ``unknown``. If it is too long to be read, all pages are reserved.
    """

    __slots__ = ("_otherwise", "_rules", "nbytes")

    def __init__(self, body: bytes) -> None:
        self._rules: list[tuple[str, list[Statement]]] = []
        self._otherwise: list[Statement] = []
        self.nbytes: int = 3 * len(body)
        if len(body) > MAX_USAGE_BYTES:
            # The file is not read, and may reserve any use.
            self._otherwise = _statements(RESERVATION, _RESERVED, _TOO_LONG, TDMREP_JSON)
            return
        try:
            rules = json.loads(body, object_pairs_hook=_parse_object)
            self._rules = [_rule_of(rule) for rule in rules if _is_rule(rule)]
        except (ValueError, TypeError, RecursionError):
            rules = None
        if not isinstance(rules, list):
            text = body.decode("utf-8", "replace")
            self._otherwise = statements_of(TDMREP, {}, text, None, TDMREP_JSON)

    @classmethod
    def unread(cls, why: str) -> TdmRules:
        """Return rules for a file that could not be fetched: all targets are ``unknown``."""
        rules = cls(b"[]")
        rules._otherwise = statements_of(TDMREP, {}, why, None, TDMREP_JSON)
        return rules

    def statements_for(self, target: str) -> list[Statement]:
        """Return the statements for a canonical target: those of the first location that matches.

        If none does, the list is empty; of a file that was not read, it is that for all targets.
        """
        for pattern, statements in self._rules:
            if is_match(pattern, target):
                return statements
        return self._otherwise


def _parse_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict of the members of a JSON object; of those with one name the last counts.

    But if one of several members ``tdm-reservation`` is ``1``, that member counts.
    """
    reservations = [m for m in members if m[0] == RESERVATION and _text(m[1]) == _RESERVED]
    return dict([*members, *reservations])


def _is_rule(rule: Any) -> bool:
    location = rule.get("location") if isinstance(rule, dict) else None
    return isinstance(location, str) and location.startswith(("/", "*")) and "\n" not in location


def _rule_of(rule: dict[str, Any]) -> tuple[str, list[Statement]]:
    """Return the canonical pattern and the statements of a rule that ``_is_rule`` has accepted."""
    raw = json.dumps(rule)
    statements = _statements(RESERVATION, _text(rule.get(RESERVATION)), raw, TDMREP_JSON)
    policy = rule.get(POLICY)
    if isinstance(policy, str):
        statements += _statements(POLICY, policy, policy, TDMREP_JSON)
    return canonical_patterns(rule["location"].encode("utf-8", "surrogatepass")), statements


def _statements(label: str, value: str, raw: str, place: str) -> list[Statement]:
    read = _VALUES.get(value, UNKNOWN) if label == RESERVATION else UNKNOWN
    return statements_of(TDMREP, {label: read}, raw, None, place)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON doesn't distinguish 1.0 from 1
    return "" if isinstance(value, bool) else str(value)
