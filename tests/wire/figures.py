"""What the journal of the hosts says of a promise, as figures.

A request counts for the pause of a host if it arrived

- later than ``grace`` seconds after a crawl had the headers of the first refusal: what arrived earlier
  had left before that (0.1 s; 0.3 s where a fleet shares the refusal on a busy machine; 0.6 s where the
  event loop may stop while the connection of such a request is made). A crawl that reads late tells
  when, by the same clock; but no later than ``LATEST_READ`` after the host wrote it;
- and more than ``EARLY`` before the pause was over: before the latest ``Retry-After`` that was sent.

What arrived after the pause, and before the first answer to one of these, are probes: there is to be
one. The host takes long for that answer. Requests for robots.txt count for none of these.
"""

from collections import Counter
from itertools import pairwise

from tests.wire.cells import ADDRESSES

LEAST_GAP = 0.95
EARLY = 0.05
LATEST_READ = 1.0
SEEN_GAP = 0.9
"""A control whose gaps are not smaller shows nothing."""
LEAST_RATE = 0.85
ROBOTS = "/robots.txt"
STALE = 0.3
"""Seconds for which a request may be on its way when robots.txt expires."""
ROUND = 1.0
"""Seconds between requests that make them two rounds, where each waits for a timeout."""
NAMES = {address: role for role, address in ADDRESSES.items()}


def pages_of(journal, host):
    """Return the requests for pages of a host, which is a role or an address."""
    host = ADDRESSES.get(host, host)
    return [entry for entry in journal.get(host, ()) if entry["path"] != ROBOTS]


def smallest_gap(journal, hosts):
    """Return the smallest number of seconds between two pages of a host; None if there is none."""
    times = [[entry["at"] for entry in pages_of(journal, host)] for host in hosts]
    return min((after - before for each in times for before, after in pairwise(each)), default=None)


def with_delay(cell):
    return [host for host, story in cell.stories.items() if "delay" in (story.get("robots") or "")]


def pause(journal, cell, read=()):
    """Return the requests in the pause of the host, the probes, and the rounds after it.

    ``read`` has the times at which crawls had the headers of their first refusals.
    """
    pages = pages_of(journal, "refusing")
    refusals = [entry for entry in pages if entry["retry_after"] is not None]
    if not refusals:
        return {}
    written = min(entry["answered"] for entry in refusals)
    begin = min(min(read, default=written), written + LATEST_READ) + cell.grace
    end = max(entry["answered"] + int(entry["retry_after"]) for entry in refusals)
    inside = [entry for entry in pages if begin < entry["at"] < end - EARLY]
    after = [entry for entry in pages if entry["at"] >= end - EARLY]
    found = {"pause": len(inside), "probes": 0}
    if after:
        answers = [entry["answered"] for entry in after if entry["answered"] is not None]
        answered = min(answers, default=after[0]["at"] + 0.9 * cell.hang)
        found["probes"] = sum(entry["at"] < answered for entry in after)
        if cell.stories["refusing"].get("hangs"):
            gaps = [later["at"] - earlier["at"] for earlier, later in pairwise(after)]
            found["rounds"] = 1 + sum(gap > ROUND for gap in gaps)
    return found


def decided(journal, cell):
    """Return the requests after robots.txt had expired, and after one that forbids them."""
    story = cell.stories["changing"]
    asked = [entry for entry in journal[ADDRESSES["changing"]] if entry["path"] == ROBOTS]
    pages = pages_of(journal, "changing")
    stale = disallowed = 0
    for page in pages:
        known = [entry for entry in asked if entry["answered"] < page["at"]]
        stale += not known or page["at"] > known[-1]["answered"] + story["max_age"] + STALE
        changed = asked[0]["at"] + story["changed"][0]
        disallowed += any(
            changed <= entry["at"] and entry["answered"] + cell.grace < page["at"]
            for entry in known
        )
    return {"stale": stale, "disallowed": disallowed}


def rate(journal, hosts):
    """Return the pages a second of some hosts, from the first request of the crawl on."""
    begin = min(entry["at"] for entries in journal.values() for entry in entries)
    times = [entry["at"] for host in hosts for entry in pages_of(journal, host)]
    return len(times) / (max(times) - begin)


def ends(crawls, yielded):
    """Return how many requests have ended, how many more than once, of how many.

    ``yielded`` has the numbers of the requests that are to end.
    """
    counts = Counter()
    for crawl in crawls:
        counts.update({int(number): times for number, times in crawl["ends"].items()})
    return {
        "yielded": len(yielded),
        "ended": sum(number in counts for number in yielded),
        "twice": sum(counts[number] > 1 for number in yielded),
    }


def of_cell(cell, journal, crawls, yielded):
    hosts = {each["host"].removeprefix("to ") for w in cell.workers for each in w.requests}
    found = {"control": smallest_gap(journal, ["control"])} if "control" in hosts else {}
    if "paced" in hosts:
        found["gap"] = smallest_gap(journal, with_delay(cell))
    if "refusing" in hosts:
        read = [crawl["refusal_read"] for crawl in crawls]
        found.update(pause(journal, cell, [each for each in read if each is not None]))
    if "changing" in hosts:
        found.update(decided(journal, cell))
    served = [
        entry
        for host, entries in journal.items()
        if not NAMES.get(host, "").startswith(("to ", "gate"))
        for entry in entries
        if entry["path"] != ROBOTS and entry["status"] == 200
    ]
    found["pages"] = len(served)
    found.update(ends(crawls, yielded))
    levels = ("log_count/ERROR", "log_count/CRITICAL")
    found["errors"] = sum(crawl["stats"].get(each, 0) for crawl in crawls for each in levels)
    return found


def broken(cell, found):
    names = []
    if found.get("gap", LEAST_GAP) is None or found.get("gap", LEAST_GAP) < LEAST_GAP:
        names.append("gap")
    if found.get("pause"):
        names.append("pause")
    if found.get("probes", 1) > 1:
        names.append("probes")
    if found.get("rounds", 1) > 2:
        names.append("rounds")
    names += [name for name in ("stale", "disallowed") if found.get(name)]
    if found.get("rate", 1) < LEAST_RATE:
        names.append("rate")
    if found["ended"] < found["yielded"] or found["twice"]:
        names.append("ends")
    return [name for name in names if name not in cell.excepted]


def unmeasured(cell, found):
    """Return what a cell does not show, as what it is to be measured by did not happen."""
    names = []
    if "control" in found and (found["control"] is None or found["control"] > SEEN_GAP):
        names.append("control")
    if "gap" in found and found["gap"] is None:
        names.append("no gaps")
    if any(each["host"] == "refusing" for w in cell.workers for each in w.requests):
        names += ["no refusal"] if "pause" not in found else []
        names += ["no probe"] if not cell.without and found.get("probes") == 0 else []
    return names
