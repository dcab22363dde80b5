"""What the stacks share; which of them can run here; and the table at the end."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from tests.stacks.stack import Stack

_MODULES = {
    "test_curl_cffi.py": ("scrapy_curl_cffi",),
    "test_handlers.py": ("h2", "httpx"),
    "test_impersonate.py": ("scrapy_impersonate",),
    "test_playwright.py": ("scrapy_playwright",),
    "test_poet.py": ("scrapy_poet",),
    "test_redis.py": ("scrapy_redis",),
    "test_rotating_proxies.py": ("rotating_proxies",),
    "test_scrapyd.py": ("scrapyd",),
    "test_spidermon.py": ("spidermon",),
    "test_splash.py": ("scrapy_splash",),
    "test_user_agents.py": ("scrapy_user_agents", "scrapy_fake_useragent"),
    "test_zyte_api.py": ("scrapy_zyte_api",),
}
"""What the stacks need beside what ``make test`` has; ``make stacks`` has all of it."""
_ALL = bool(os.environ.get("REP_STACKS"))


def _lacking(module):
    return [] if _ALL else [name for name in _MODULES.get(module, ()) if find_spec(name) is None]


# What needs the other environment is no part of what decides whether a change lands.
collect_ignore = [module for module in _MODULES if os.environ.get("CI") and _lacking(module)]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent.name == "stacks" and (lacking := _lacking(item.path.name)):
            why = f"no {', '.join(lacking)} here: make stacks has it"
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture
def stack(request, web, tmp_path, record_property):
    """A function that begins a stack: ``stack("scrapy-playwright")``."""

    def begin(package, **kwargs):
        return Stack(web, tmp_path, record_property, package, **kwargs)

    return begin


def pytest_terminal_summary(terminalreporter):
    rows = [
        value
        for outcome in ("passed", "failed", "xfailed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "stack" and report.when == "call"
    ]
    if not rows:
        return
    write = terminalreporter.write_line
    terminalreporter.section("stacks")
    write(
        f"{'package':24} {'version':8} {'case':42} {'leaked':>6} {'robots.txt':>10}  how these went"
    )
    for row in sorted(rows, key=lambda row: (row["package"], row["case"])):
        asked = "/".join(map(str, sorted(set(row["robots"].values())))) or "-"
        write(
            f"{row['package']:24} {row['version']:8} {row['case']:42} {len(row['leaked']):>6}"
            f" {asked:>10}  {', '.join(row['ways']) or '-'}"
        )
        for each in row["leaked"]:
            write(f"{'':34}reached the wire: {each}")
        for each in row["inside"]:
            write(f"{'':34}followed inside: {each}")
        for each in row["missing"]:
            write(f"{'':34}did not arrive: {each}")
