"""What counts for a delay and for a pause, in journals that are made up."""

import pytest

from tests.wire import figures
from tests.wire.cells import ADDRESSES, BASE, CELLS

EXPIRES = next(cell for cell in CELLS if cell.name == "expires")
REFUSED = (10.0, 429, 5)


def page(at, status=200, retry_after=None, answered=0.05, path="/0/1"):
    return {
        "at": at,
        "path": path,
        "status": status,
        "answered": None if answered is None else at + answered,
        "retry_after": None if retry_after is None else str(retry_after),
    }


def journal(role, *pages):
    return {ADDRESSES[role]: list(pages)}


def test_a_gap_is_between_pages_of_one_host():
    both = {
        **journal("paced", page(1), page(1.5, path="/robots.txt"), page(2), page(3.2)),
        **journal("refusing", page(1.1)),
    }
    assert figures.smallest_gap(both, ["paced", "refusing"]) == 1
    assert figures.smallest_gap(both, ["refusing"]) is None


@pytest.mark.parametrize(
    ("at", "counts"),
    [(9, False), (10.04, False), (10.14, False), (10.16, True), (14.9, True), (15.2, False)],
)
def test_what_had_left_before_the_refusal_could_be_read_does_not_count(at, counts):
    came = sorted([page(*REFUSED), page(at)], key=lambda each: each["at"])
    assert figures.pause(journal("refusing", *came), BASE)["pause"] == counts


@pytest.mark.parametrize(("at", "counts"), [(10.8, False), (10.95, True), (11.2, True)])
def test_a_crawl_that_reads_late_says_so(at, counts):
    came = journal("refusing", page(*REFUSED), page(at))
    assert figures.pause(came, BASE, [10.8, 12])["pause"] == counts


def test_a_crawl_may_not_read_as_late_as_it_likes():
    came = journal("refusing", page(*REFUSED), page(11.2))
    assert figures.pause(came, BASE, [14])["pause"] == 1


def test_a_later_refusal_makes_the_pause_longer():
    came = journal("refusing", page(*REFUSED), page(10.1, 429, 6), page(15.5))
    assert figures.pause(came, BASE) == {"pause": 1, "probes": 0}


@pytest.mark.parametrize(("at", "probes"), [(15.3, 2), (15.6, 1)])
def test_one_probe_is_sent_before_its_answer(at, probes):
    came = journal("refusing", page(*REFUSED), page(15.1, answered=0.5), page(at))
    assert figures.pause(came, BASE) == {"pause": 0, "probes": probes}


def test_without_a_refusal_there_is_nothing_to_count():
    assert figures.pause(journal("refusing", page(1)), BASE) == {}


@pytest.mark.parametrize(
    ("at", "stale", "disallowed"), [(2.2, 0, 0), (2.5, 1, 0), (3.1, 0, 0), (3.2, 0, 1), (6, 1, 1)]
)
def test_what_is_sent_after_the_rules_expired_or_changed(at, stale, disallowed):
    asked = (page(0, path="/robots.txt"), page(3, path="/robots.txt"))
    came = sorted([*asked, page(at)], key=lambda each: each["at"])
    found = figures.decided(journal("changing", *came), EXPIRES)
    assert found == {"stale": stale, "disallowed": disallowed}
