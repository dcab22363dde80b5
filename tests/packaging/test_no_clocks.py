"""No test depends on how fast a machine is: none reads a clock, and none sleeps.

What is to have happened is waited for, with tests/waiting.py; a site holds its answers until it is
released; what is to be over is made so by moving the ``clock``. How long something took says something
of the machine. Benchmarks measure just that, and so does the table of the wire.
"""

import ast
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

TESTS = Path(__file__).parents[1]
EXEMPT = {"benchmarks", "fuzz", "mutants", "simulation", "wire"}
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
LATER = {"sleep", "call_later", "callLater", "call_at", "Timer"}
TIMES = {"elapsed_time_seconds"}
LIMITS = {"wait", "join", "communicate", "wait_for", "timeout", "result"}
"""Calls that may be given a number of seconds."""
ALLOWED = {
    ("waiting.py", "reads time.time"): "moves the clocks of the package",
    ("waiting.py", "reads time.monotonic"): "the same",
    ("admission/test_host_leases.py", "calls sleep"): "a store that answers late: more is the same",
    ("admission/test_crawl_delay.py", "reads time.monotonic"): "a gap is no smaller on a slow machine",
    ("downloadermiddlewares/test_actions.py", "reads time.time"): "until when an entry holds",
    ("downloadermiddlewares/test_places.py", "an answer after 0.2 s"): "so that many wait for it",
    ("downloadermiddlewares/test_robotstxt_fetch.py", "calls sleep"): "longer than the wire waits",
    ("downloadermiddlewares/test_robotstxt_fetch.py", "an answer after 2.5 s"): "the same",
    ("waiting.py", "calls sleep"): "between two looks at what is waited for",
    ("acid/server.py", "reads time.monotonic"): "the journal tells when a request came",
    ("acid/server.py", "calls sleep"): "what a story says",
    ("crawling/mode_crawl.py", "calls sleep"): "the same",
    ("crawling/server.py", "reads time.time"): "the journal tells when a request came",
    ("crawling/server.py", "calls sleep"): "what a story says",
    ("stores/test_contract.py", "reads time.time"): "the clock of a store, as a crawl gives it one",
    ("stores/test_contract.py", "calls sleep"): "a lease ends by itself: more does no harm",
    ("stores/kills.py", "calls sleep"): "kills at moments that wander, whichever these are",
    ("stores/test_sqlite.py", "a limit of 0.3 s"): "is to be over, as the file is locked",
    ("extensions/report/browser.py", "a limit of 0 s"): "none, as Playwright has it",
    ("fetch/test_open_files.py", "calls call_later"): "files are free again while requests wait for them",
    ("fetch/faults.py", "an answer after 0.1 s"): "what was sent before comes by itself; or not",
    ("conformance/adapters/pipe.py", "reads time.process_time"): "times engines, when asked to",
    ("test_spiders.py", "an answer after 0.3 s"): "leaves time for a line that is not to come",
}  # fmt: skip


class Finder(ast.NodeVisitor):
    """Finds what depends on the time that something takes."""

    def __init__(self):
        self.found = set()
        self.of_time = {}
        """Names that stand for the functions of ``time`` here."""

    def visit_ImportFrom(self, node):
        if node.module == "time":
            self.of_time |= {each.asname or each.name: each.name for each in node.names}

    def visit_Import(self, node):
        for each in node.names:
            if each.name == "time" and each.asname:
                self.found.add("another name for the module time")

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "time" and node.attr in CLOCKS:
            self.found.add(f"reads time.{node.attr}")
        self.generic_visit(node)

    def visit_Name(self, node):
        name = self.of_time.get(node.id)
        if name in CLOCKS:
            self.found.add(f"reads time.{name}")
        self.generic_visit(node)

    def visit_Call(self, node):
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        name = self.of_time.get(name, name)
        if name in LATER:
            self.found.add(f"calls {'sleep' if name == 'sleep' else name}")
        limits = [each.value for each in node.keywords if each.arg == "timeout"]
        if name in LIMITS:
            limits += node.args
        for each in limits:
            if isinstance(each, ast.Constant) and isinstance(each.value, int | float):
                self.limit(each.value)
        self.generic_visit(node)

    def limit(self, seconds):
        if seconds < PATIENCE:
            self.found.add(f"a limit of {seconds} s")

    def visit_Constant(self, node):
        if node.value in TIMES:
            self.found.add(f"looks at {node.value}")

    def visit_List(self, node):
        values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        if len(values) == 2 == len(node.elts) and values[0] == "wait":
            self.found.add(f"an answer after {values[1]} s")
        self.generic_visit(node)


def found_in(source):
    finder = Finder()
    finder.visit(ast.parse(source))
    return finder.found


def test_no_test_depends_on_how_fast_a_machine_is():
    found = {
        (path.relative_to(TESTS).as_posix(), what)
        for path in TESTS.glob("**/*.py")
        if path.relative_to(TESTS).parts[0] not in EXEMPT and path != Path(__file__)
        for what in found_in(path.read_text(encoding="utf-8"))
    }
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set(), "allowed for nothing"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import time\nassert time.monotonic() - began < 6", "reads time.monotonic"),
        ("from time import perf_counter as now\nbegan = now()", "reads time.perf_counter"),
        ("import time\nread = time.time", "reads time.time"),
        ("import time as t", "another name for the module time"),
        ("time.sleep(1)", "calls sleep"),
        ("from time import sleep as rest\nrest(1)", "calls sleep"),
        ("async def f():\n    await asyncio.sleep(0.2)", "calls sleep"),
        ("loop.call_later(0.4, close)", "calls call_later"),
        ("assert result.stats['elapsed_time_seconds'] < 15", "looks at elapsed_time_seconds"),
        ("subprocess.run(command, timeout=60)", "a limit of 60 s"),
        ("process.wait(10)", "a limit of 10 s"),
        ("site = web.site([['wait', 0.5], *robots('')])", "an answer after 0.5 s"),
    ],
)
def test_it_would_be_found(source, what):
    assert found_in(source) == {what}


def test_nothing_else_is_found():
    assert found_in("process.wait(PATIENCE)\nmoment = clock.time()\nsite.url('/wait')") == set()
