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

from tests.acid.stories_of_the_demo import STORIES as ACID
from tests.waiting import run_to_end

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

# What robots.txt came to, in order, and why pages were dropped; what may be fetched is the stories'.
PRIVATE = "Disallow: /private (line 2)"
STORIES = {
    "plain rules": (["available: status 200"], [f"2: {PRIVATE}"]),
    "wildcards": (["available: status 200"], ["1: Disallow: /*.php$ (line 2)", "1: Disallow: /*?sort= (line 3)"]),
    "a group for us": (["available: status 200"], ["1: Disallow: /not-for-demobot (line 5)"]),
    "none (404)": (["unavailable: status 404"], []),
    "forbidden (403)": (["unavailable: status 403"], []),
    "down (503)": (["unreachable: status 503"], [f"2: {DOWN}"]),
    "down, then recovers": (["unreachable: status 503", "available: status 200"], [f"1: {PRIVATE}", f"1: {DOWN}"]),
    "hangs": (["unreachable: timed out after 20 s"], [f"2: {DOWN}"]),
    "redirect chain": (["available: status 200, 33 bytes, redirects: 5"], [f"1: {PRIVATE}"]),
    "redirect to another host": (["available: status 200, 33 bytes, redirects: 1"], [f"1: {PRIVATE}"]),
    "endless file": (["available: status 200, 51"], [f"1: {PRIVATE}"]),
    "gzip bomb": (["available: status 200, 51"], [f"1: {PRIVATE}"]),
    "HTML for robots.txt": (["available: status 200"], []),
    "expires quickly": (["available: status 200"] * 2, ["1: Disallow: /new (line 2)", "1: Disallow: /old (line 2)"]),
    "a burst of links": (["available: status 200"], ["49: Disallow: / (line 2)"]),
}  # fmt: skip


# On a slow machine these may be asked more often, as their clocks are short.
AGAIN = {"down (503)", "down, then recovers", "hangs", "expires quickly"}


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
                notes = [note]
                self.crawled[name] = int(fetched), int(dropped), notes
            elif match := _NOTE.fullmatch(line):
                notes.append(match[1])
        self.wire = {}
        for line in web.splitlines():
            if match := _WIRE.fullmatch(line):
                self.wire[match[1]] = tuple(map(int, match.groups()[1:4]))


def environment(**more):
    return {**os.environ, "PYTHONUNBUFFERED": "1", **more}


def run(tmp_path, *arguments, **more):
    options = {"cwd": tmp_path, "env": environment(**more), "timeout": TIMEOUT}
    process = run_to_end(sys.executable, str(DEMO), *arguments, **options)
    return Demo(process.returncode, process.stdout), process.stderr


@pytest.mark.first
def test_demo_tells_what_the_readme_promises(tmp_path):
    demo, errors = run(tmp_path, "-s", f"REP_TIMEOUT={HANGING}", DEMO_LATER=str(LATER))
    assert demo.status == 0, demo.output + errors
    assert "Traceback" not in errors
    assert list(demo.crawled) == ["the start page", *(story.name for story in ACID)]
    assert len(demo.wire) == len(ACID) + 2
    for story in ACID:
        name, (outcomes, reasons) = story.name, STORIES[story.name]
        fetched, dropped, notes = demo.crawled[name]
        forbidden = story.forbidden + story.later_forbidden
        assert (fetched, dropped) == (len(story.may_be_fetched), len(forbidden)), name
        came_to = [note for note in notes if not note.startswith("dropped ")]
        assert len(came_to) == 1 or name in AGAIN, name
        assert len(came_to) >= len(outcomes), name
        assert came_to[0].startswith(outcomes[0]), name
        assert came_to[-1].startswith(outcomes[-1]), name
        assert sorted({*notes} - {*came_to}) == [f"dropped {reason}" for reason in reasons], name
        # By the count of the web itself, which has no part in the crawl.
        assert demo.wire[name] == (len(came_to), fetched, 0), name


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
