"""What cases are written with: one call for a case, beside the clause that it is written for."""

from __future__ import annotations

import base64
from typing import NamedTuple

from tests.conformance.clauses import CLAUSES

ALLOWED, DISALLOWED = True, False
UNASKED = object()


class Repeat(NamedTuple):
    """What part of the body stands there how many times."""

    start: int
    stop: int
    times: int


class Book:
    """Cases of one source file, in order."""

    def __init__(self):
        self.cases = []

    def clause(self, clause):
        """Return a function that adds a case of *clause*.

        A line of None is where no rule decides; none is given where no document says which rule
        does. *others* are other fields of the answer, such as ``sitemaps``.
        """
        whose = CLAUSES[clause].whose

        def add(
            name,
            asks,
            body,
            url="/",
            allowed=UNASKED,
            line=UNASKED,
            *,
            tokens=("ExampleBot",),
            repeat=None,
            **others,
        ):
            octets = body.encode() if isinstance(body, str) else body
            expected = {"allowed": allowed, "line": line, **others}
            self.cases.append(
                {
                    "id": f"{clause}/{name}",
                    "clause": clause,
                    "whose": whose,
                    "asks": asks,
                    "text": octets.decode("utf-8", "backslashreplace"),
                    "body": base64.b64encode(octets).decode(),
                    **({"repeat": repeat._asdict()} if repeat else {}),
                    "tokens": list(tokens),
                    "url": url if url.startswith("http") else f"https://example.com{url}",
                    "expected": {
                        key: value for key, value in expected.items() if value is not UNASKED
                    },
                }
            )

        return add


def star(*lines):
    """Return a file of one group, for anyone: its rules begin in the second line."""
    return joined("user-agent: *", *lines)


def matches(c, name, pattern, path, why="", *, does=True):
    """Add a case: a rule for *pattern* holds for *path*, or doesn't."""
    asks = f"{pattern} {'matches' if does else 'does not match'} {path}{why and f': {why}'}."
    c(name, asks, star(f"disallow: {pattern}"), path, not does, 2 if does else None)


def matches_not(*case):
    """Add a case: a rule for a pattern doesn't hold for a path."""
    matches(*case, does=False)


def joined(*lines):
    """Return lines, each with LF behind it."""
    return "".join(f"{line}\n" for line in lines)


def body_of(case):
    """Return the body of a case as bytes, with what is repeated."""
    octets = base64.b64decode(case["body"])
    if "repeat" not in case:
        return octets
    start, stop, times = case["repeat"].values()
    return octets[:start] + octets[start:stop] * times + octets[stop:]
