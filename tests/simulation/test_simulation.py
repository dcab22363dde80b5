"""A few hundred seeds of the simulation; ``make simulate`` runs a hundred thousand."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulation import turns, world
from tests.simulation.breakages import BREAKAGES, BREAKAGES_OF_TURNS, broken
from tests.simulation.loop import ViolationError

SEEDS = {world: 200, turns: 600}
FOUND = (1116, 3920, 10363, 34545, 37965)
"""Seeds of a long run in which something did not hold: in the keeper, or in what was checked."""
HUNDREDS = [(kind, first) for kind, seeds in SEEDS.items() for first in range(0, seeds, 100)]
BROKEN = [(world, name) for name in BREAKAGES] + [(turns, name) for name in BREAKAGES_OF_TURNS]


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def simulated():
    """Simulate in another thread, as this one has an event loop that runs."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda kind, seed, **sizes: thread.submit(kind.simulate, seed, **sizes).result()


@pytest.mark.parametrize(("kind", "first"), HUNDREDS)
def test_what_must_hold_holds(simulated, kind, first):
    for seed in range(first, first + 100):
        simulated(kind, seed)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_is_mended(simulated, seed):
    simulated(world, seed)


@pytest.mark.parametrize("kind", SEEDS)
@pytest.mark.parametrize("seed", [3, 4])
def test_a_seed_replays(simulated, kind, seed):
    one, other = (simulated(kind, seed) for _ in range(2))
    assert (one.loop.steps, one.faults, one.ends) == (other.loop.steps, other.faults, other.ends)


def test_turns_of_many_workers(simulated):
    fleet = simulated(turns, 1, workers=20, origins=100, requests=1_000)
    assert fleet.ends > 500  # those of workers that die are not sent


@pytest.mark.parametrize(("kind", "name"), BROKEN)
def test_a_broken_line_is_found(simulated, kind, name):
    def some_seeds():
        for seed in range(SEEDS[kind]):
            simulated(kind, seed)

    with broken(name), pytest.raises(ViolationError):
        some_seeds()
