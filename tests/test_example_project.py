"""The demonstration, run for real: what its tables say is what the README promises."""

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

DEMO = Path(__file__).resolve().parents[1] / "example_project" / "demo.py"
TIMEOUT = 600
HANGING = 20
"""Seconds that the demo takes a site for one that hangs after. With the four that it has by itself it
would be over sooner, and sites that are well would hang on a machine that is busy."""
LATER = 30
"""Seconds, in place of one and a half, in which the crawl is to take in what it was told before: what
it knows of a robots.txt holds for a second from then on, and the file has become another one."""
DOWN = "robots.txt is unreachable"

_ROW = re.compile(r"http://127\.0\.0\.1:\d+  +(.+?)  +(\d+)  +(\d+)  (.+)")
_NOTE = re.compile(r" {30,}(\S.*)")
_WIRE = re.compile(r"(.+?)  +(\d+)  +(\d+)  +(\d+)(?:  (.+))?")

# story: pages fetched, pages dropped, what robots.txt came to (in order), why pages were dropped
STORIES = {
    "the start page": (3, 0, ["unavailable: status 404"], []),
    "plain rules": (3, 2, ["available: status 200"], ["2: Disallow: /private (line 2)"]),
    "wildcards": (4, 2, ["available: status 200"], ["1: Disallow: /*.php$ (line 2)", "1: Disallow: /*?sort= (line 3)"]),
    "a group for us": (2, 1, ["available: status 200"], ["1: Disallow: /not-for-demobot (line 5)"]),
    "none (404)": (2, 0, ["unavailable: status 404"], []),
    "forbidden (403)": (2, 0, ["unavailable: status 403"], []),
    "down (503)": (0, 2, ["unreachable: status 503"], [f"2: {DOWN}"]),
    "down, then recovers": (2, 2, ["unreachable: status 503", "available: status 200"], ["1: Disallow: /private (line 2)", f"1: {DOWN}"]),
    "hangs": (0, 2, ["unreachable: timed out after 20 s"], [f"2: {DOWN}"]),
    "redirect chain": (2, 1, ["available: status 200, 33 bytes, redirects: 5"], ["1: Disallow: /private (line 2)"]),
    "redirect to another host": (2, 1, ["available: status 200, 33 bytes, redirects: 1"], ["1: Disallow: /private (line 2)"]),
    "endless file": (2, 1, ["available: status 200, 51"], ["1: Disallow: /private (line 2)"]),
    "gzip bomb": (2, 1, ["available: status 200, 51"], ["1: Disallow: /private (line 2)"]),
    "HTML for robots.txt": (2, 0, ["available: status 200"], []),
    "expires quickly": (3, 2, ["available: status 200"] * 2, ["1: Disallow: /new (line 2)", "1: Disallow: /old (line 2)"]),
    "a burst of links": (1, 49, ["available: status 200"], ["49: Disallow: / (line 2)"]),
}  # fmt: skip


# On a slow machine these may be asked more often, as their clocks are short.
AGAIN = {"down (503)", "down, then recovers", "hangs", "expires quickly"}


@dataclass
class Row:
    fetched: int
    dropped: int
    notes: list[str]

    @property
    def came_to(self):
        return [note for note in self.notes if not note.startswith("dropped ")]

    @property
    def why(self):
        return [note for note in self.notes if note.startswith("dropped ")]


@dataclass
class Demo:
    status: int
    output: str

    def __post_init__(self):
        spider, _, web = self.output.partition("What reached the web")
        self.crawled = {}
        for line in spider.splitlines():
            if match := _ROW.fullmatch(line):
                name, fetched, dropped, note = match.groups()
                row = self.crawled[name] = Row(int(fetched), int(dropped), [note])
            elif match := _NOTE.fullmatch(line):
                row.notes.append(match[1])
        self.wire = {}
        for line in web.splitlines():
            if match := _WIRE.fullmatch(line):
                self.wire[match[1]] = tuple(map(int, match.groups()[1:4]))


def environment(**more):
    return {**os.environ, "PYTHONUNBUFFERED": "1", **more}


def run(tmp_path, *arguments, **more):
    process = subprocess.run(
        [sys.executable, str(DEMO), *arguments],
        cwd=tmp_path,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return Demo(process.returncode, process.stdout), process.stderr


@pytest.mark.first
def test_demo_tells_what_the_readme_promises(tmp_path):
    demo, errors = run(tmp_path, "-s", f"REP_TIMEOUT={HANGING}", DEMO_LATER=str(LATER))
    assert demo.status == 0, demo.output + errors
    assert "Traceback" not in errors
    assert list(demo.crawled) == list(STORIES)
    assert len(demo.wire) == len(STORIES) + 1
    for story in STORIES:
        demo_tells(demo, story)
    # By the count of the web itself, which has no part in the crawl.
    for story, (robots, pages, disallowed) in demo.wire.items():
        assert disallowed == 0, story
        if story in STORIES:
            assert pages == STORIES[story][0], story
            assert robots == len(demo.crawled[story].came_to), story


def demo_tells(demo, story):
    fetched, dropped, outcomes, reasons = STORIES[story]
    row = demo.crawled[story]
    assert (row.fetched, row.dropped) == (fetched, dropped), story
    came_to = row.came_to
    if story in AGAIN:
        assert len(came_to) >= len(outcomes), story
    else:
        assert len(came_to) == 1, story
    assert came_to[0].startswith(outcomes[0]), story
    assert came_to[-1].startswith(outcomes[-1]), story
    assert sorted(row.why) == [f"dropped {reason}" for reason in reasons], story


def test_demo_fails_where_a_disallowed_page_gets_out(tmp_path):
    demo, errors = run(tmp_path, "-s", "ADDONS={}", "-s", "ROBOTSTXT_OBEY=False")
    assert demo.status == 1
    assert demo.wire["plain rules"] == (0, 5, 2)
    assert f"{demo.wire['all'][2]} disallowed pages reached the web." in errors


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_demo_leaves_no_process_behind(tmp_path, interrupt):
    with subprocess.Popen(
        [sys.executable, str(DEMO)],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        # A process that was started in the background may have been told to ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no other threads here
    ) as demo:
        lines = iter(demo.stdout.readline, "")
        command = next(line for line in lines if "start=" in line)
        next(line for line in lines if "robots.txt of" in line)
        # A terminal's Ctrl-C goes to the whole group, a SIGTERM to the one process.
        if interrupt == signal.SIGINT:
            os.killpg(demo.pid, interrupt)
        else:
            demo.send_signal(interrupt)
        # Ends when the last process that writes to it has ended.
        demo.stdout.read()
        assert demo.wait(TIMEOUT) == 128 + interrupt
    front = urlsplit(re.search(r"start=(\S+)", command)[1])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((front.hostname, front.port), TIMEOUT)
