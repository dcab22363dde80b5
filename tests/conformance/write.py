"""Write cases.json from what cases_*.py say: ``python -m tests.conformance.write``."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

from tests.conformance import (
    cases_encoding,
    cases_groups,
    cases_lines,
    cases_matching,
    cases_others,
)
from tests.conformance.clauses import CLAUSES

PATH = Path(__file__).parent / "cases.json"
SOURCES = (cases_lines, cases_groups, cases_matching, cases_encoding, cases_others)


def text():
    """Return cases.json: a clause and a case to each line, so that a change shows as one."""
    clauses = {name: clause._asdict() for name, clause in CLAUSES.items()}
    cases = chain.from_iterable(source.BOOK.cases for source in SOURCES)
    lines = [
        '{"clauses": {',
        ",\n".join(f"{dumped(name)}: {dumped(clause)}" for name, clause in clauses.items()),
        '}, "cases": [',
        ",\n".join(map(dumped, cases)),
        "]}\n",
    ]
    return "\n".join(lines)


def dumped(value):
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
