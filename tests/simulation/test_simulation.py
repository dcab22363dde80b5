"""Some seeds of the simulation; ``python -m tests.simulation`` runs a hundred thousand."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulation import turns
from tests.simulation.breakages import BREAKAGES, broken
from tests.simulation.loop import ViolationError

SEEDS = 100
FOUND_BY = {
    "pauses are not read": 43,
    "what begins during a claim is not seen": 513,
    "any lease is released": 342,
    "who was under way ends the pause": 269,
    "one of those who wait is woken": 28,
}
"""A seed that finds it, which is tried first: others take long. After a change it may be another."""


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def simulated():
    """Simulate in another thread, as this one has an event loop that runs."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda seed, **sizes: thread.submit(turns.simulate, seed, **sizes).result()


@pytest.mark.first
@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_what_must_hold_holds(simulated, first):
    for seed in range(first, first + 50):
        simulated(seed)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_seed_replays(simulated, seed):
    one, other = (simulated(seed) for _ in range(2))
    assert (one.loop.steps, one.faults, one.sent) == (other.loop.steps, other.faults, other.sent)


def test_turns_of_many_workers(simulated):
    fleet = simulated(1, workers=20, origins=100, requests=1_000)
    assert fleet.sent > 500  # those of workers that die are not sent


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_line_is_found(simulated, name):
    def some_seeds():
        for seed in (FOUND_BY.get(name, 0), *range(6 * SEEDS)):
            simulated(seed)

    with broken(name), pytest.raises(ViolationError):
        some_seeds()
