"""What the hosts' journal and those of the processes say of the promises.

A request was sent by a process of the crawl, which its time and its number tell. Of a crawl without a
store, only what its own process was told counts; else what any worker was told. Times for which a
request may be on its way, or an answer unread, are the constants.
"""

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from urllib.parse import urlsplit

from tests.wire.chaos.plan import delay_of, group_of
from tests.wire.figures import EARLY, LATEST_READ, LEAST_GAP, ROBOTS

GRACE = 0.4
"""Seconds for which a request may be on its way when an answer comes that forbids it."""
FLEET_GRACE = 0.8
"""The same for what another worker was told."""
FIRST_PAUSE = 1.0
"""Seconds of the first pause without Retry-After."""
LEAST_LIFE = 1.0
"""Seconds for which a decision is valid at least, also if the rules expire sooner."""

_RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[)", re.MULTILINE)
_BAD = re.compile(
    r"\] (ERROR|CRITICAL): |Traceback|Unhandled|never awaited|never retrieved|but it is pending"
)
_EXPECTED = re.compile(r"\[scrapy\.(downloadermiddlewares\.retry|pipelines\.\w+)\] ")
"""Loggers of Scrapy that tell so of pages that are not answered."""


@dataclass
class Found:
    """What came of a crawl."""

    requests: int = 0
    delayed: int = 0
    """Gaps that were measured."""
    paused: int = 0
    """Pauses."""
    forbidden: int = 0
    """Requests that were not sent because of robots.txt."""
    smallest: float | None = None
    """The smallest gap, as a share of the delay."""
    breaks: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """What broke a promise, by its name."""


def judge(plan, journal, processes):
    """Return what came of a crawl."""
    found = Found()
    for address, entries in journal.items():
        if address not in plan.hosts:  # another program of the machine has asked
            continue
        host = plan.hosts[address]
        pages = [entry for entry in entries if entry["path"] != ROBOTS]
        found.requests += len(pages)
        _leaks(plan, host, journal, pages, processes, found)
        _gaps(plan, host, pages, processes, found)
        _pauses(plan, host, pages, processes, found)
    _ends(plan, processes, found)
    return found


def _number(entry):
    return int(entry["path"].rpartition("/")[2])


def _process_of(entry, processes):
    """Return the process that sent a request."""
    worker = _number(entry) // 2000
    of_worker = [each for each in processes if each.worker == worker and each.began <= entry["at"]]
    return of_worker[-1] if of_worker else processes[0]


def _asked(address, journal):
    return [entry for entry in journal.get(address, ()) if entry["path"] == ROBOTS]


def _told(host, journal):
    """Return the robots.txt answers that decide about ``host``, in order, and its redirects."""
    asked = _asked(host.address, journal)
    if host.follows and asked:
        asked = _asked(host.follows, journal)
    return [entry for entry in asked if entry["answered"] is not None]


def _version(host, answer, first):
    if len(host.rules) == 1:
        return host.rules[0]
    return host.rules[answer["at"] - first >= host.story["changed"][0]]


def _allows(rules, entry):
    group = group_of(rules, entry["agent"])
    return group is None or not any(entry["path"].startswith(path) for path in group["disallow"])


def _leaks(plan, host, journal, pages, processes, found):
    answers = _told(host, journal)
    asked = _asked(host.address, journal)
    grace = GRACE if len(plan.requests) == 1 else FLEET_GRACE
    for page in pages:
        process = _process_of(page, processes)
        since = process.began if plan.store == "memory" else 0
        known = [each for each in answers if since <= each["at"] and each["answered"] < page["at"]]
        what = f"{host.address} {host.kind} {page['path']} {page['agent']} at {page['at']:.3f}"
        if not known:
            found.breaks["leak"].append(f"before robots.txt: {what}")
            continue
        older = [each for each in known if each["answered"] < page["at"] - grace]
        counts = [each for each in known if each not in older] + older[-1:]
        first = asked[0]["at"]
        if not any(_allows(_version(host, each, first), page) for each in counts):
            found.breaks["leak"].append(what)
        answered = known[-1]["answered"]
        # One that was lost with its connection is this page itself, which Twisted has sent again.
        earlier = any(
            answered < each["at"] < page["at"]
            and _process_of(each, processes) is process
            and (each["path"], each["status"]) != (page["path"], "lost")
            for each in pages
        )
        age = page["at"] - answered
        # Rules are valid for one page of each process also if they have expired.
        if (life := host.story.get("max_age")) and earlier and age > life + LEAST_LIFE + grace:
            found.breaks["stale"].append(f"{what}: {age:.2f} s after the rules")


def _gaps(plan, host, pages, processes, found):
    if "delay" in plan.settings.get("DOWNLOAD_SLOTS", {}).get(host.address, {}):
        return
    delayed = []
    for page in pages:
        groups = [group_of(rules, page["agent"]) for rules in host.rules]
        asked = min(0 if group is None else delay_of(group) for group in groups)
        if asked:
            delayed.append((page, asked))
    pairs = list(pairwise(delayed))
    if _is_alone(plan):
        of_process = defaultdict(list)
        for page, asked in delayed:
            of_process[_process_of(page, processes).began].append((page, asked))
        pairs = [pair for each in of_process.values() for pair in pairwise(each)]
    for (before, first), (after, second) in pairs:
        if before["status"] == "lost" and _is_resent(host, before, after, processes):
            continue
        found.delayed += 1
        asked = min(first, second)
        share = (after["at"] - before["at"]) / asked
        found.smallest = share if found.smallest is None else min(found.smallest, share)
        if share < LEAST_GAP:
            found.breaks["gap"].append(
                f"{host.address} {host.kind} delay {asked}: {after['at'] - before['at']:.3f} s "
                f"{before['path']} -> {after['path']} {before['agent']} -> {after['agent']} "
                f"at {after['at']:.3f}"
            )


def _is_alone(plan):
    """Return whether each process keeps delays and pauses by itself, as no store is shared."""
    return plan.store == "memory" or plan.outage is not None


def _is_resent(host, before, after, processes):
    """Return whether Twisted has sent again, by itself, what was lost with its connection."""
    reached = [
        each["t"]
        for each in _process_of(after, processes).of("reached")
        if f"//{host.address}:" in each["url"] and urlsplit(each["url"]).path == after["path"]
    ]
    return before["path"] == after["path"] and not any(
        before["at"] < at < after["at"] for at in reached
    )


def _pauses(plan, host, pages, processes, found):
    refusals = [
        entry
        for entry in pages
        if entry["status"] == 429 or (entry["status"] == 503 and entry["retry_after"])
    ]
    fleet = len(plan.requests) > 1
    over, counted = -1.0, set()
    for refusal in refusals:
        process = _process_of(refusal, processes)
        suffix = f"//{host.address}:"
        read = min(
            (
                each["t"]
                for each in process.of("read")
                if suffix in each["url"]
                and urlsplit(each["url"]).path == refusal["path"]
                and each["t"] >= refusal["answered"]
            ),
            default=refusal["answered"],
        )
        read = min(read, refusal["answered"] + LATEST_READ)
        if process.signal == 9 and read > process.ended - 1:
            continue  # killed before it could tell anybody
        seconds = int(refusal["retry_after"] or 0)
        if not seconds:
            if refusal["at"] < over:
                continue
            seconds = FIRST_PAUSE
        end = refusal["answered"] + seconds
        found.paused += end > over
        over = max(over, end)
        for page in pages:
            if _is_alone(plan) and _process_of(page, processes) is not process:
                continue
            grace = FLEET_GRACE if fleet and _process_of(page, processes) is not process else GRACE
            if read + grace < page["at"] < end - EARLY and page["at"] not in counted:
                counted.add(page["at"])
                found.breaks["pause"].append(
                    f"{host.address} {page['path']} at {page['at']:.3f}: {page['at'] - read:.2f} s after "
                    f"{refusal['path']} {refusal['status']} Retry-After {refusal['retry_after']}"
                )


def _ends(plan, processes, found):
    begun, ended = set(), defaultdict(list)
    for process in processes:
        begun.update(each["number"] for each in process.of("begun"))
        for each in process.of("end"):
            ended[each["number"]].append(each["outcome"])
            found.forbidden += each["outcome"] == "RobotsTxtDisallowed"
        if process.of("gave up"):
            found.breaks["hang"].append(f"worker {process.worker}: {process.journal[-1]['waits']}")
        elif not process.of("closed") and process.signal != 9:
            found.breaks["hang"].append(f"worker {process.worker} did not tell that it closed")
        found.breaks["error"] += _errors(process.log)
    if plan.stop and plan.stop[0] == 9:
        begun = {number for number in begun if number // 2000}
    for number in sorted(begun):
        if len(ended[number]) != 1:
            name = "twice" if ended[number] else "lost"
            found.breaks[name].append(f"{number}: {ended[number]}")


def _errors(log):
    """Return the records of a log that tell of an error in the crawl."""
    return [
        record[:4000]
        for record in _RECORD.split(log)
        if _BAD.search(record) and not _EXPECTED.search(record.partition("\n")[0])
    ]
