"""The cases are sound, cover their clauses, and scrapy-rep passes them."""

import base64
import json
import os
import shlex
import shutil
import sys
from collections import Counter

import jsonschema
import pytest

from tests.conformance import results
from tests.conformance.running import body_of, judge, run
from tests.waiting import PATIENCE, run_to_end

FOLDER = results.CASES.parent
FILE = json.loads(results.CASES.read_text(encoding="utf-8"))
CASES = FILE["cases"]


def test_a_clause_and_a_case_are_a_line_each_and_text_is_what_the_body_says():
    lines = results.CASES.read_text(encoding="utf-8").count("\n")
    assert lines == len(FILE["clauses"]) + len(CASES) + 3
    for case in CASES:
        assert case["text"] == base64.b64decode(case["body"]).decode("utf-8", "backslashreplace")


@pytest.mark.parametrize(
    ("name", "file"),
    [("schema.json", FILE), ("results.schema.json", results.read())],
    ids=["cases", "results"],
)
def test_the_files_are_as_their_schemas_say(name, file):
    schema = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(file)


def test_no_two_cases_are_the_same():
    assert len({case["id"] for case in CASES}) == len(CASES)
    asked = Counter(
        (body_of(case), case["url"], *case["tokens"], *sorted(case["expected"])) for case in CASES
    )
    assert max(asked.values()) == 1


def test_each_case_names_its_clause_and_whose_that_is():
    for case in CASES:
        assert case["whose"] == FILE["clauses"][case["clause"]]["whose"]
        if case["whose"] == "rfc":
            assert case["by"].startswith(("RFC 9309, section 2", "RFC 9309, section 5")), case["id"]
        assert case["id"].startswith(f"{case['clause']}/")
    assert {case["clause"] for case in CASES} == set(FILE["clauses"])


def test_scrapy_rep_passes_all():
    adapter = FOLDER / "adapters" / "with_scrapy_rep.py"
    answers = run([sys.executable, str(adapter)], CASES, seconds=PATIENCE)
    judged = {case["id"]: judge(case, answers[case["id"]]) for case in CASES}
    assert [name for name, each in judged.items() if not each.passed or each.line is False] == []


def test_the_results_are_of_these_cases_and_scrapy_rep_passes_all():
    run = results.read()
    (ours,) = (row for row in run["engines"] if row["name"] == "scrapy-rep")
    assert ours["failed"] == {}
    assert ours["late"] == []
    assert run["cases"] == len(CASES)
    assert run["digest"] == results.digest(), "python -m tests.conformance --write"
    assert run["version"] == FILE["version"] == results.VERSION


def test_the_page_has_the_results():
    assert results.page(results.read()) == results.PAGE.read_text(encoding="utf-8")


def test_a_copy_of_the_folder_asks_an_engine_with_the_standard_library_alone(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "copied", ignore=shutil.ignore_patterns("test_*"))
    program = "print('{\"allowed\": true}', flush=True)"
    engine = [sys.executable, "-c", f"import sys\nfor line in sys.stdin: {program}"]
    arguments = ("--engine", "yes", shlex.join(engine))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    copied = (sys.executable, "-S", "-m", "copied")
    done = run_to_end(*copied, *arguments, cwd=tmp_path, env=environment)
    allowed = sum(
        case["expected"].get("allowed", False) for case in CASES if case["whose"] == "rfc"
    )
    rfc = sum(case["whose"] == "rfc" for case in CASES)
    assert f"{allowed} of {rfc}" in done.stdout, done.stderr
