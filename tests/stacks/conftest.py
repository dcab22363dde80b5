"""What the stacks share, and which of them can run here."""

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
        item.add_marker(pytest.mark.skip(reason=f"no {', '.join(names)} here: make stacks has it"))


def _lacking(item):
    names = [name for marker in item.iter_markers("needs") for name in marker.args]
    return [name for name in names if find_spec(name) is None]


@pytest.fixture
def stack(web, tmp_path):
    return Stack(web, tmp_path)


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
    return find_browser()


@pytest.fixture
def redis(redis_server):
    redis_server.client.flushall()
    return redis_server.uri
