"""Asks an engine for each case over a pipe, and judges what it answers.

An engine that crashes fails that case. One that doesn't answer in time has not passed it, and not
failed it either. It is started again for the next one.
"""

import base64
import json
import os
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

SECONDS = 10.0
"""Of work for an answer, the start of the engine included."""
LOOKS = 20
"""How often a look is taken in that time."""


class Engine:
    def __init__(self, command, seconds=SECONDS, env=None):
        self.command = command
        self.seconds = seconds
        self.env = env
        self.process = None

    def ask(self, case):
        """Return the answer as a dict; one with ``error`` or ``late`` where there is none."""
        if self.process is None:
            self._start()
        question = {
            "body": base64.b64encode(body_of(case)).decode(),
            "tokens": case["tokens"],
            "url": case["url"],
        }
        answered, late = threading.Event(), threading.Event()
        watcher = threading.Thread(target=self._watch, args=[answered, late])
        watcher.start()
        line = ""
        with suppress(OSError):
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        answered.set()
        watcher.join()
        if late.is_set():
            self.close()
            return {"late": self.seconds}
        if not line:
            return self._failed("crashed")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            return self._failed(f"no JSON object: {line.strip()[:200]}")
        return answer

    def close(self):
        """Stop the engine, and return the last line of its errors, in a list."""
        if self.process is None:
            return []
        self.process.kill()
        with suppress(OSError):  # What it didn't read is still to be written.
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.process = None
        with self._errors:
            self._errors.seek(0)
            return self._errors.read().decode(errors="replace").splitlines()[-1:]

    def _start(self):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the engine runs
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env=self.env,
        )

    def _watch(self, answered, late):
        """Stop the engine when its time is over, of work or of doing nothing.

        Where others keep it from working, it gets more time.
        """
        begun = last = worked(self.process.pid)
        idle = 0
        while not answered.wait(self.seconds / LOOKS):
            done = worked(self.process.pid)
            idle = idle + 1 if done == last else 0
            last = done
            if idle == LOOKS or done - begun >= self.seconds:
                late.set()
                self.process.kill()
                return

    def _failed(self, why):
        return {"error": ": ".join([why, *self.close()])}


def worked(pid):
    """Return the seconds of the processor that a process and its children took; 0 if unknown."""
    try:
        _, _, fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")
    except OSError:
        return 0.0
    return sum(map(int, fields.split()[11:15])) / os.sysconf("SC_CLK_TCK")


class Judged(NamedTuple):
    """What an answer is worth; None where nothing was answered of what is asked, or not in time."""

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
    elif "late" in answer or not fields:
        passed = None
    else:
        passed = all(answer[name] == expected[name] for name in fields)
    has_line = "line" in answer and "line" in expected
    return Judged(passed, answer["line"] == expected["line"] if has_line else None)


def run(command, cases, **options):
    engine = Engine(command, **options)
    try:
        return {case["id"]: engine.ask(case) for case in cases}
    finally:
        engine.close()


def body_of(case):
    octets = base64.b64decode(case["body"])
    if "repeat" not in case:
        return octets
    start, stop, times = case["repeat"].values()
    return octets[:start] + octets[start:stop] * times + octets[stop:]
