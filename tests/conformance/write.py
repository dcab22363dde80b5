"""Write cases.json from what cases_*.py say: ``python -m conformance.write``."""

import json
from itertools import chain
from pathlib import Path

from . import (
    cases_encoding,
    cases_groups,
    cases_lines,
    cases_matching,
    cases_others,
)
from .clauses import CLAUSES
from .results import VERSION

PATH = Path(__file__).parent / "cases.json"
SOURCES = (cases_lines, cases_groups, cases_matching, cases_encoding, cases_others)


def text():
    """Return cases.json: a clause and a case to each line, so that a change shows as one."""
    clauses = {name: fields(clause) for name, clause in CLAUSES.items()}
    cases = chain.from_iterable(source.BOOK.cases for source in SOURCES)
    lines = [
        f'{{"version": "{VERSION}", "clauses": {{',
        ",\n".join(f"{dumped(name)}: {dumped(clause)}" for name, clause in clauses.items()),
        '}, "cases": [',
        ",\n".join(map(dumped, cases)),
        "]}\n",
    ]
    return "\n".join(lines)


def fields(clause):
    return {name: value for name, value in clause._asdict().items() if name != "by"}


def dumped(value):
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
