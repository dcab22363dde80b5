"""Drives Chromium, headless, by the DevTools protocol over a pair of pipes."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
from pathlib import Path

from tests.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)


def find_browser():
    if os.name != "posix":
        return None  # Windows passes no descriptors on by their numbers
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page in a browser of its own."""

    def __init__(self, executable, folder):
        # Chromium reads commands from its descriptor 3, and writes to 4.
        theirs_in, self.into = self._pipe()
        self.out, theirs_out = self._pipe()

        def as_three_and_four():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.process = subprocess.Popen(
            [executable, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            preexec_fn=as_three_and_four,  # noqa: PLW1509 - this process has no other threads here
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.session = None
        self.problems = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    @staticmethod
    def _pipe():
        import fcntl

        # Above those that the child puts its own in place of.
        ends = os.pipe()
        high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
        for end in ends:
            os.close(end)
        return high

    def call(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.out], [], [], PATIENCE)
            assert ready, "the browser does not answer"
            part = os.read(self.out, 1 << 20)
            assert part, "the browser has ended"
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        event = json.loads(message)
        if event.get("method") in {"Runtime.exceptionThrown", "Log.entryAdded"}:
            self.problems.append(event["params"])
        return event

    def open(self, path):
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        while self.run("document.readyState + location.protocol") != "completefile:":
            self._read()  # it tells what it does on the way there

    def run(self, script):
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text
            )

    def look(self, path, width, height, scheme, *, whole=True):
        """Save a screenshot: of the whole page, or of what a window of this size shows."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self.into)
        os.close(self.out)
