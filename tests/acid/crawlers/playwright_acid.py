"""Playwright alone, which knows nothing of robots.txt: ``python playwright_acid.py URL``."""

import shutil
import sys
from contextlib import suppress

from playwright.sync_api import Error, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

with sync_playwright() as playwright:
    found = filter(None, map(shutil.which, BROWSERS))
    browser = playwright.chromium.launch(executable_path=next(found), args=["--no-sandbox"])
    context = browser.new_context(user_agent="demobot/1.0", ignore_https_errors=True)
    waiting = sys.argv[1:]
    seen = set(waiting)
    while waiting:
        # A page of its own: one that could not be loaded interrupts the next.
        page = context.new_page()
        with suppress(Error):
            page.goto(waiting.pop(0))
            for link in page.eval_on_selector_all("a", "all => all.map(one => one.href)"):
                if link not in seen:
                    seen.add(link)
                    waiting.append(link)
        page.close()
    browser.close()
