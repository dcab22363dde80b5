"""Asks an engine for each case over a pipe, and judges what it answers.

An engine that crashes, or doesn't answer in time, fails that case, and is started again for the
next one.
"""

from __future__ import annotations

import base64
import json
import queue
import subprocess
import threading
from collections import deque
from typing import NamedTuple

from tests.conformance.writing import body_of

SECONDS = 10.0
"""For an answer, the start of the engine included."""
ENDED = object()


class Engine:
    """A process that answers cases."""

    def __init__(self, command, seconds=SECONDS, env=None):
        self.command = command
        self.seconds = seconds
        self.env = env
        self._process = None

    def ask(self, case):
        """Return the answer as a dict; one with ``error`` where there is none."""
        if self._process is None:
            self._start()
        question = {
            "body": base64.b64encode(body_of(case)).decode(),
            "tokens": case["tokens"],
            "url": case["url"],
        }
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=self.seconds)
        except queue.Empty:
            return self._failed(f"no answer in {self.seconds:g} s")
        except OSError:
            line = ENDED
        if line is ENDED:
            return self._failed("crashed")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            return self._failed(f"no JSON object: {line.strip()[:200]}")
        return answer

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.stdin.close()
            self._process.wait()
            for thread in self._threads:
                thread.join()
            self._process.stdout.close()
            self._process.stderr.close()
            self._process = None

    def _start(self):
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=self.env,
        )
        self._lines = queue.Queue()
        self._last_words = deque(maxlen=1)
        self._threads = [
            threading.Thread(target=self._read_answers, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_answers(self):
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(ENDED)

    def _read_errors(self):
        self._last_words.extend(self._process.stderr)

    def _failed(self, why):
        self.close()
        return {"error": ": ".join([why, *(line.strip() for line in self._last_words)])}


class Judged(NamedTuple):
    """What an answer is worth; None where nothing was answered of what is asked."""

    passed: bool | None
    line: bool | None


def judge(case, answer):
    """Judge an answer by what the case expects of the fields that the engine answers.

    The line that decides is judged by itself: it is the engine's explanation, not its verdict.
    """
    expected = case["expected"]
    fields = [name for name in expected if name != "line" and name in answer]
    if "error" in answer:
        passed = False
    elif not fields:
        passed = None
    else:
        passed = all(answer[name] == expected[name] for name in fields)
    has_line = "line" in answer and "line" in expected
    return Judged(passed, answer["line"] == expected["line"] if has_line else None)


def run(command, cases, **options):
    """Return the answers of an engine by the cases' ids."""
    engine = Engine(command, **options)
    try:
        return {case["id"]: engine.ask(case) for case in cases}
    finally:
        engine.close()
