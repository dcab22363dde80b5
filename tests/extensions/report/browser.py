"""A page in Chromium, by Playwright."""

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser():
    """Return the path of Chromium. Without it the test is skipped, or fails where CI is set."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium on this machine")
    return found


class Page:
    """One page in a browser of its own. Playwright wants a thread that has no event loop."""

    def __init__(self, executable):
        self.problems = []
        self.thread = ThreadPoolExecutor(1)
        self._in_thread(self._start, executable)

    def _start(self, executable):
        from playwright.sync_api import sync_playwright

        self.playwright = sync_playwright().start()
        chromium, args = self.playwright.chromium, ["--disable-gpu", "--disable-dev-shm-usage"]
        self.browser = chromium.launch(executable_path=executable, args=args, timeout=0)
        self.page = self.browser.new_page()
        self.page.set_default_timeout(PATIENCE * 1_000)
        for event in ("console", "pageerror"):
            self.page.on(event, self._add_problem)

    def _add_problem(self, problem):
        self.problems.append(problem)

    def _in_thread(self, func, *args, **kwargs):
        return self.thread.submit(func, *args, **kwargs).result()

    def open(self, path):
        self._in_thread(self.page.goto, Path(path).resolve().as_uri())

    def run(self, script):
        return self._in_thread(self.page.evaluate, script)

    def press(self, key):
        self._in_thread(self.page.keyboard.press, key)

    def insert(self, text):
        self._in_thread(self.page.keyboard.insert_text, text)

    def resize(self, width, height):
        self._in_thread(self.page.set_viewport_size, {"width": width, "height": height})

    def close(self):
        self._in_thread(self.browser.close)
        self._in_thread(self.playwright.stop)
        self.thread.shutdown()
