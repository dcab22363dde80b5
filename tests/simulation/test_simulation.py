"""A few hundred seeds of the simulation; ``make simulate`` runs a hundred thousand."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.simulation import turns
from tests.simulation.breakages import BREAKAGES, BREAKAGES_OF_TURNS, broken
from tests.simulation.loop import ViolationError
from tests.simulation.world import simulate

SEEDS = 200
SEEDS_OF_TURNS = 600
FOUND = (1116, 3920, 10363, 34545, 37965)
"""Seeds of a long run in which something did not hold: in the keeper, or in what was checked."""


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def simulated():
    """Simulate in another thread, as this one has an event loop that runs."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda seed: thread.submit(simulate, seed).result()


@pytest.fixture
def turns_simulated():
    """The same of turns."""
    with ThreadPoolExecutor(1) as thread:
        yield lambda seed, **sizes: thread.submit(turns.simulate, seed, **sizes).result()


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_what_must_hold_holds(simulated, first):
    for seed in range(first, first + 50):
        simulated(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_is_mended(simulated, seed):
    simulated(seed)


def test_a_seed_replays(simulated):
    for seed in (3, 4):
        worlds = [simulated(seed) for _ in range(2)]
        assert worlds[0].loop.steps == worlds[1].loop.steps
        assert worlds[0].faults == worlds[1].faults
        assert worlds[0].fetches == worlds[1].fetches


@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_line_is_found(simulated, name):
    def some_seeds():
        for seed in range(SEEDS):
            simulated(seed)

    with broken(name), pytest.raises(ViolationError):
        some_seeds()


@pytest.mark.parametrize("first", range(0, SEEDS_OF_TURNS, 50))
def test_delays_and_pauses_are_kept(turns_simulated, first):
    for seed in range(first, first + 50):
        turns_simulated(seed)


def test_a_seed_of_turns_replays(turns_simulated):
    for seed in (3, 4):
        worlds = [turns_simulated(seed) for _ in range(2)]
        assert worlds[0].loop.steps == worlds[1].loop.steps
        assert worlds[0].faults == worlds[1].faults


def test_turns_of_many_workers(turns_simulated):
    world = turns_simulated(1, workers=20, origins=100, requests=1_000)
    assert world.sends > 500  # those of workers that die are not sent


@pytest.mark.parametrize("name", BREAKAGES_OF_TURNS)
def test_a_broken_line_of_turns_is_found(turns_simulated, name):
    def some_seeds():
        for seed in range(SEEDS_OF_TURNS):
            turns_simulated(seed)

    with broken(name), pytest.raises(ViolationError):
        some_seeds()
