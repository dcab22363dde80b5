"""The cases are sound, cover their clauses, and scrapy-rep passes them."""

from __future__ import annotations

import json
import sys
from collections import Counter

import jsonschema
import pytest

from tests.conformance import results, write
from tests.conformance.clauses import CLAUSES, POINTS
from tests.conformance.running import judge, run
from tests.conformance.writing import body_of
from tests.waiting import PATIENCE

FOLDER = results.CASES.parent
FILE = json.loads(results.CASES.read_text(encoding="utf-8"))
CASES = FILE["cases"]


def test_the_file_is_what_the_sources_say():
    assert results.CASES.read_text(encoding="utf-8") == write.text(), (
        "python -m tests.conformance.write"
    )


def test_the_file_is_as_its_schema_says():
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(FILE)


def test_each_case_has_an_id_of_its_own():
    assert [
        name for name, times in Counter(case["id"] for case in CASES).items() if times > 1
    ] == []


def test_no_two_cases_are_the_same():
    asked = Counter(
        (body_of(case), case["url"], *case["tokens"], *sorted(case["expected"])) for case in CASES
    )
    assert max(asked.values()) == 1


def test_each_case_names_its_clause_and_whose_that_is():
    for case in CASES:
        clause = FILE["clauses"][case["clause"]]
        assert case["whose"] == clause["whose"]
        assert case["id"].startswith(f"{case['clause']}/")


def test_each_clause_has_cases():
    assert {case["clause"] for case in CASES} == set(CLAUSES)


@pytest.mark.parametrize("point", POINTS)
def test_each_point_of_the_specification_has_cases(point):
    clauses = {name for name, clause in CLAUSES.items() if point in clause.points}
    assert any(case["clause"] in clauses for case in CASES)


def test_a_clause_names_no_other_points():
    assert {point for clause in CLAUSES.values() for point in clause.points} == set(POINTS)


def test_scrapy_rep_passes_all():
    adapter = FOLDER / "adapters" / "with_scrapy_rep.py"
    answers = run([sys.executable, str(adapter)], CASES, seconds=PATIENCE)
    judged = {case["id"]: judge(case, answers[case["id"]]) for case in CASES}
    assert [name for name, each in judged.items() if not each.passed or each.line is False] == []


def test_the_results_of_the_docs_say_that_scrapy_rep_passes_all():
    run = results.read()
    (ours,) = (row for row in run["engines"] if row["name"] == "scrapy-rep")
    assert ours["failed"] == {}
    assert run["cases"] == len(CASES)


def test_half_of_the_cases_tell_engines_apart():
    run = results.read()
    pairs = results.told_apart(CASES, run["engines"])
    assert 2 * len({name for ids in pairs.values() for name in ids}) >= run["cases"]
