"""Some cells of the table: ``python -m tests.wire`` has all."""

import sys
from dataclasses import replace

import pytest

from tests.wire import figures
from tests.wire.cells import CELLS
from tests.wire.run import run

# Other tests keep the machine busy: what had left before a refusal arrives later.
BY_NAME = {cell.name: replace(cell, grace=max(cell.grace, 0.6)) for cell in CELLS}
# Not those with a second worker: on a busy machine it may come when the pause is just over, and does
# not know of the probe of the first one then.
KEPT = (
    "plain",
    "plain-both",
    "a-replaced",
    "a-mutated",
    "b-last",
    "c-after",
    "d-redirect",
    "e-stalls",
    "g-direct",
    "g-scrapys",
    "h-delay-0.5",
    "k-resumed",
    "hangs",
    "expires",
)

pytestmark = [
    pytest.mark.first,
    pytest.mark.skipif(
        sys.platform != "linux", reason="has one address of loopback, and the hosts have many"
    ),
]


@pytest.mark.parametrize("name", KEPT)
def test_the_promise_is_kept(name):
    cell = BY_NAME[name]
    found, lines = run(cell)
    broken = figures.broken(cell, found) + figures.unmeasured(cell, found)
    assert broken == [], "\n".join([str(found), *lines])


@pytest.mark.parametrize("name", ["control-off", "control-behind", "control-lost"])
def test_what_is_broken_on_purpose_is_seen(name):
    cell = BY_NAME[name]
    found, _ = run(cell)
    assert set(cell.loses) <= set(figures.broken(cell, found))


def test_each_cell_has_a_name_of_its_own():
    assert len(BY_NAME) == len(CELLS)
