"""An engine that fails fails no more than the cases that it fails."""

import base64
import sys

from tests.conformance.running import Engine, judge, run
from tests.waiting import PATIENCE

# An engine that does what the path says.
PROGRAM = """
import json, sys
for line in sys.stdin:
    path = json.loads(line)["url"].rpartition("/")[2]
    if path == "crash":
        sys.exit("out of order")
    if path == "hang":
        while True:
            pass
    print("?" if path == "nonsense" else json.dumps({"allowed": True}), flush=True)
"""


def cases(*paths):
    return [
        {
            "id": f"{path}-{number}",
            "body": base64.b64encode(b"user-agent: *\n").decode(),
            "tokens": ["ExampleBot"],
            "url": f"https://example.com/{path}",
            "expected": {"allowed": True},
        }
        for number, path in enumerate(paths)
    ]


def test_an_engine_that_crashes_or_answers_no_json_fails_that_case_only():
    asked = cases("a", "crash", "b", "crash", "nonsense", "c")
    answers = run([sys.executable, "-c", PROGRAM], asked, seconds=PATIENCE)
    judged = [
        (judge(case, answers[case["id"]]).passed, *answers[case["id"]].values()) for case in asked
    ]
    crashed, nonsense = (False, "crashed: out of order"), (False, "no JSON object: ?")
    assert judged == [(True, True), crashed, (True, True), crashed, nonsense, (True, True)]


def test_an_engine_that_hangs_is_late_for_that_case_only():
    first, hang, second = cases("a", "hang", "b")
    engine = Engine([sys.executable, "-c", PROGRAM], seconds=PATIENCE)
    assert engine.ask(first) == {"allowed": True}
    engine.seconds = 0
    assert engine.ask(hang) == {"late": 0}
    engine.seconds = PATIENCE
    assert engine.ask(second) == {"allowed": True}
    engine.close()
