"""What engines answered: kept as JSON, and the tables that are drawn from it.

``python -m conformance.results`` draws the page of tables anew.
"""

import hashlib
import json
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from .running import judge

VERSION = "2.0"
"""Of the cases. CHANGES.md says what changed with it."""
HERE = Path(__file__).parent
CASES = HERE / "cases.json"
RESULTS = HERE / "results.json"
PAGE = HERE / "RESULTS.md"
WHOSE = ("rfc", "google-doc", "google-parser", "decision")
LATE = "no answer in time"


def read_cases(path=CASES):
    return json.loads(path.read_text(encoding="utf-8"))["cases"]


def read(path=RESULTS):
    return json.loads(path.read_text(encoding="utf-8"))


def digest():
    """Return what tells these cases from others."""
    return hashlib.sha256(CASES.read_bytes()).hexdigest()[:16]


def gathered(cases, rows, order):
    """Return the rows of engines beside those that are known of others, of the same cases."""
    before = read() if RESULTS.exists() else {}
    known = before["engines"] if before.get("digest") == digest() else []
    both = {row["name"]: row for row in [*known, *rows]}
    names = [*order, *(name for name in both if name not in order)]
    return {
        "version": VERSION,
        "digest": digest(),
        "cases": len(cases),
        "engines": [both[name] for name in names if name in both],
    }


def write(found):
    """Write the results of engines, a line for each, and the page that has tables of them."""
    head = {key: value for key, value in found.items() if key != "engines"}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found["engines"])
    RESULTS.write_text(f'{json.dumps(head)[:-1]}, "engines": [\n{lines}\n]}}\n', encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")


def summary(cases, name, version, answers):
    """Return a row: what isn't said of a case is as expected."""
    failed, late, unasked, wrong_lines, lines = {}, [], [], [], 0
    asked, passes = Counter(), Counter()
    for case in cases:
        answer = answers[case["id"]]
        passed, line = judge(case, answer)
        if "late" in answer:
            late.append(case["id"])
        elif passed is None:
            unasked.append(case["id"])
            continue
        elif not passed:
            kept = {*case["expected"], "error"} - {"line"}
            failed[case["id"]] = {key: value for key, value in answer.items() if key in kept}
        asked[case["whose"]] += 1
        passes[case["whose"]] += passed is True
        lines += line is not None
        if line is False:
            wrong_lines.append(case["id"])
    return {
        "name": name,
        "version": version,
        "date": datetime.now(timezone.utc).date().isoformat(),
        "passed": {whose: [passes[whose], asked[whose]] for whose in WHOSE},
        "lines": lines,
        "wrong_lines": wrong_lines,
        "unasked": unasked,
        "late": late,
        "failed": failed,
    }


def table(rows):
    """Return rows of text, the head first: cases passed, of those asked, by whose they are."""
    yield ("engine", *WHOSE, LATE, "deciding lines")
    for row in rows:
        yield (
            label(row),
            *("{} of {}".format(*row["passed"][whose]) for whose in WHOSE),
            str(len(row["late"])),
            f"{row['lines'] - len(row['wrong_lines'])} of {row['lines']}" if row["lines"] else "",
        )


def label(row):
    """Return name and version of an engine, whose name may have a part of the version."""
    name, _, last = row["name"].rpartition(" ")
    known = name if row["version"].startswith(f"{last}.") else row["name"]
    return f"{known} {row['version']}".strip()


def markdown(rows):
    head, *rest = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *rest))


def page(found):
    rows = found["engines"]
    dates = sorted({row["date"] for row in rows})
    failures = (
        (row["name"], whose, "; ".join(names) or "none")
        for row in rows
        for whose, names in by_whose(row).items()
        if names
    )
    slow = [(row["name"], "; ".join(row["late"])) for row in rows if row["late"]]
    return f"""\
# Engines and robots.txt: results of the conformance cases

Version {found["version"]} of the cases, {found["cases"]} of them. Run from {dates[0]} to {dates[-1]}. Drawn from `results.json` by
`python -m conformance.results`. What the words mean is in `README.md`.

{markdown(table(rows))}
Passed, of those that apply to the engine. An engine that gives no answer in time has not passed, and has not failed either.

## Not passed

{markdown([("engine", "whose", "cases"), *failures])}
## No answer in time

{markdown([("engine", "cases"), *slow])}"""


def by_whose(row):
    whose = {case["id"]: case["whose"] for case in read_cases()}
    return {name: [case for case in row["failed"] if whose[case] == name] for name in WHOSE}


if __name__ == "__main__":
    write(read())
