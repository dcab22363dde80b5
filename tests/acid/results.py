"""What the acid test found of each crawler, as JSON, and the tables that are drawn from it."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docs" / "_static" / "acid.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- python -m tests.acid.compare -->\n", "<!-- end -->\n"
WHOSE = ("RFC 9309", "Google", "decision")
KEPT, STRICT, NOT_KEPT = "kept", "too strict", "not kept"


def is_strict(fault):
    """Return whether a fault is that something was left out which is allowed."""
    return fault.endswith((" is allowed, and was not requested", "nothing was requested"))


def read():
    return json.loads(FILE.read_text(encoding="utf-8"))


def summary(found):
    """Rows of a table: how many stories each crawler kept, by whose rule they are."""
    of = {name: [whose(story) == name for story in found["stories"]] for name in WHOSE}
    totals = [f"{name} ({sum(of[name])})" for name in WHOSE]
    yield ("crawler", f"kept (of {len(found['stories'])})", STRICT, NOT_KEPT, *totals)
    for crawler in by_kept(found):
        came = [verdict(fault) for fault in crawler["faults"]]
        counts = [came.count(each) for each in (KEPT, STRICT, NOT_KEPT)]
        for name in WHOSE:
            counts.append(sum(a and b == KEPT for a, b in zip(of[name], came, strict=True)))
        yield (f"{crawler['name']} {crawler['version']}", *map(str, counts))


def failures(found):
    """Rows of a table: the stories that each crawler did not keep."""
    yield ("crawler", NOT_KEPT, STRICT)
    for crawler in by_kept(found):
        came = [verdict(fault) for fault in crawler["faults"]]
        yield (
            crawler["name"],
            *(names(found, came, each) or "none" for each in (NOT_KEPT, STRICT)),
        )


def names(found, came, what):
    both = zip(found["stories"], came, strict=True)
    return "; ".join(story["story"] for story, each in both if each == what)


def stories(found):
    """Rows of a table: what each story is about."""
    yield ("story", "what it shows", "rule")
    for story in found["stories"]:
        yield (story["story"], story["shows"], story["clause"])


TABLES = {"crawlers": summary, "failures": failures, "stories": stories}


def commands(found):
    """How each crawler was run, as text."""
    return "\n".join(
        f"# {each['name']} {each['version']}, {each['date']}\n{each['command']}"
        for each in found["crawlers"]
    )


def by_kept(found):
    return sorted(found["crawlers"], key=lambda each: -each["faults"].count(""))


def verdict(faults):
    """What came of a story, whose first fault is one of being too strict only if all are."""
    if not faults:
        return KEPT
    return STRICT if is_strict(faults.partition(";")[0]) else NOT_KEPT


def whose(story):
    return story["clause"].partition(" §")[0].partition(",")[0]


def readme(found):
    """The README with the table of what was found."""
    head, *rows = (f"| {' | '.join(row)} |" for row in summary(found))
    table = [head, "| --- | --: | --: | --: | --: | --: | --: |", *rows]
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + "\n".join(["", *table, "", ""]) + END + rest.partition(END)[2]
