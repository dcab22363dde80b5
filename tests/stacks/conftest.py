"""What the stacks share; which of them can run here; and the table at the end."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from tests.extensions.report.browser import find_browser
from tests.stacks.stack import Stack

_ALL = bool(os.environ.get("REP_STACKS"))
"""Whether this is the environment of ``make stacks``, where nothing may be missing."""


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a package that is not here; say so, but where CI is set.

    What needs the other environment is no part of what decides whether a change lands.
    """
    lacking = {} if _ALL else {item: _lacking(item) for item in items}
    lacking = {item: names for item, names in lacking.items() if names}
    if os.environ.get("CI"):
        config.hook.pytest_deselected(items=list(lacking))
        items[:] = [item for item in items if item not in lacking]
        return
    for item, names in lacking.items():
        why = f"no {', '.join(names)} here: make stacks has it"
        item.add_marker(pytest.mark.skip(reason=why))


def _lacking(item):
    names = [name for marker in item.iter_markers("needs") for name in marker.args]
    return [name for name in names if find_spec(name) is None]


@pytest.fixture
def stack(request, web, tmp_path, record_property):
    """A function that begins a stack: ``stack("scrapy-playwright")``."""

    def begin(package, **kwargs):
        return Stack(web, tmp_path, record_property, package, **kwargs)

    return begin


@pytest.fixture
def endpoint():
    """A function that opens what stands between crawls and sites, until the test has ended."""
    opened = []

    def begin(kind, refusal=None):
        opened.append(kind(refusal))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def browser():
    found = find_browser()
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("no Chromium here")
    return found


@pytest.fixture
def redis(redis_server):
    redis_server.client.flushall()
    return redis_server.uri


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
        f"{'package':24} {'version':8} {'case':46} {'leaked':>6} {'robots.txt':>10}  how these went"
    )
    for row in sorted(rows, key=lambda row: (row["package"], row["case"])):
        asked = "/".join(map(str, sorted(set(row["robots"].values())))) or "-"
        leaked = f"{len(row['leaked'])}+{len(row['known'])}" if row["known"] else len(row["leaked"])
        write(
            f"{row['package']:24} {row['version']:8} {row['case']:46} {leaked:>6}"
            f" {asked:>10}  {', '.join(row['ways']) or '-'}"
        )
        for each in row["leaked"]:
            write(f"{'':34}reached the wire: {each}")
        for each in row["known"]:
            write(f"{'':34}known, fetched inside: {each}")
        for each in row["missing"]:
            write(f"{'':34}did not arrive: {each}")
