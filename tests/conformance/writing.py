"""What cases are written with: one call for a case, beside the clause that it is written for."""

import base64
from typing import NamedTuple

from .clauses import CLAUSES
from .sentences import SENTENCES

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
        does. *others* are other fields of the answer, such as ``sitemaps``. *by* is the sentence of
        RFC 9309 that decides, where it is not that of the clause.
        """
        whose = CLAUSES[clause].whose
        usual = CLAUSES[clause].by

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
            by=usual,
            **others,
        ):
            octets = body.encode() if isinstance(body, str) else body
            expected = {"allowed": allowed, "line": line, **others}
            self.cases.append(
                {
                    "id": f"{clause}/{name}",
                    "clause": clause,
                    "whose": whose,
                    **({"by": sentence(by)} if whose == "rfc" else {}),
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


def sentence(name):
    section, words = SENTENCES[name]
    return f"RFC 9309, section {section}: {words}"


def matches(c, name, pattern, path, why="", *, does=True, **how):
    """Add a case: a rule for *pattern* holds for *path*, or doesn't."""
    asks = f"{pattern} {'matches' if does else 'does not match'} {path}{why and f': {why}'}."
    c(name, asks, star(f"disallow: {pattern}"), path, not does, 2 if does else None, **how)


def matches_not(*case, **how):
    """Add a case: a rule for a pattern doesn't hold for a path."""
    matches(*case, does=False, **how)


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
