"""What engines answered: kept as JSON, and the tables that are drawn from it."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from itertools import combinations
from pathlib import Path

from tests.conformance.running import judge

CASES = Path(__file__).parent / "cases.json"
RESULTS = Path(__file__).parents[2] / "docs" / "_static" / "conformance" / "results.json"
WHOSE = ("rfc", "google-doc", "google-parser", "decision")


def read_cases():
    return json.loads(CASES.read_text(encoding="utf-8"))["cases"]


def read():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def write(path, cases, engines):
    """Write the results of engines, a line for each."""
    rows = [summary(cases, *engine) for engine in engines]
    head = {"date": datetime.now(timezone.utc).date().isoformat(), "cases": len(cases)}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{json.dumps(head)[:-1]}, "engines": [\n{lines}\n]}}\n', encoding="utf-8")


def summary(cases, name, version, answers):
    """Return a row: what isn't said of a case is as expected."""
    failed, unasked, wrong_lines, lines = {}, [], [], 0
    asked, passes = Counter(), Counter()
    for case in cases:
        answer = answers[case["id"]]
        passed, line = judge(case, answer)
        asked[case["whose"]] += passed is not None
        passes[case["whose"]] += passed is True
        if passed is None:
            unasked.append(case["id"])
        elif not passed:
            kept = {*case["expected"], "error"} - {"line"}
            failed[case["id"]] = {key: value for key, value in answer.items() if key in kept}
        lines += line is not None
        if line is False:
            wrong_lines.append(case["id"])
    return {
        "name": name,
        "version": version,
        "passed": {whose: [passes[whose], asked[whose]] for whose in WHOSE},
        "lines": lines,
        "wrong_lines": wrong_lines,
        "unasked": unasked,
        "failed": failed,
    }


def table(rows):
    """Return rows of text, the head first: cases passed, of those asked, by whose they are."""
    yield ("engine", *WHOSE, "deciding lines")
    for row in rows:
        yield (
            f"{row['name']} {row['version']}".strip(),
            *("{} of {}".format(*row["passed"][whose]) for whose in WHOSE),
            f"{row['lines'] - len(row['wrong_lines'])} of {row['lines']}" if row["lines"] else "",
        )


def told_apart(cases, rows):
    """Return, by pair of engines, the ids of cases that both answer, and not alike."""
    return {
        (one["name"], other["name"]): [
            case["id"]
            for case in cases
            if case["id"] not in {*one["unasked"], *other["unasked"]}
            and one["failed"].get(case["id"]) != other["failed"].get(case["id"])
        ]
        for one, other in combinations(rows, 2)
    }
