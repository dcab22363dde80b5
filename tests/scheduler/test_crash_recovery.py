"""The queue after a crawl that was killed: what its files have is found, all of it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.squeues import PickleFifoDiskQueue

from tests.scheduler.killed_queue import DOWNSTREAM
from tests.scheduler.queues import Doors, FakeCrawler, drain, ours, scrapys

BOTH = pytest.mark.parametrize("downstream", ["Fifo", "Lifo"])
URLS = [f"https://{host}.example/{n}" for n in range(40) for host in "abc"]


@pytest.fixture
def folder(tmp_path):
    """As a JOBDIR has it; warnings of files that Scrapy 2.14 never closes go by this name."""
    return tmp_path / "requests.queue"


def killed(folder, *push, queue="ours", downstream="Fifo", state=None, pop=0):
    """Push URLs and pop some in a process that is killed; return what was popped."""
    requests = [item if isinstance(item, tuple) else (item, 0, False) for item in push]
    order = {
        "folder": str(folder),
        "queue": queue,
        "downstream": downstream,
        "state": state,
        "push": requests,
        "pop": pop,
    }
    process = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("killed_queue.py"))],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == -9, process.stderr
    return json.loads(process.stdout)


def opened(folder, *, make=ours, downstream="Fifo", state=None):
    return make(
        FakeCrawler(Doors()),
        key=folder,
        state=state,
        downstream=DOWNSTREAM[downstream],
        start=PickleFifoDiskQueue,
    )


def test_of_a_killed_crawl_all_that_was_not_taken_comes(folder, caplog):
    caplog.set_level("INFO")
    taken = killed(folder, *URLS, downstream="Lifo", pop=30)
    queue = opened(folder, downstream="Lifo")
    assert len(queue) == len(URLS) - 30
    assert f"{len(URLS) - 30} requests were found in queues" in caplog.text
    assert Counter(drain(queue)) == Counter(URLS) - Counter(taken)
    assert queue.close() == {}


def test_of_a_killed_crawl_what_was_taken_of_a_fifo_file_comes_again(folder):
    killed(folder, *URLS, pop=30)
    assert Counter(drain(opened(folder))) == Counter(URLS)


def test_of_a_killed_crawl_not_all_that_was_taken_comes_again(folder):
    urls = [f"https://a.example/{n}" for n in range(250)]
    taken = killed(folder, *urls, pop=230)
    assert taken == urls[:230]
    assert drain(opened(folder)) == urls[200:]


@BOTH
def test_of_a_killed_crawl_priorities_and_start_requests_stay(folder, downstream):
    push = [
        ("https://a.example/start", 0, True),
        ("https://a.example/page", 0, False),
        ("https://a.example/last", -3, True),
        ("https://a.example/first", 10, False),
        ("data:,x", 0, False),
    ]
    killed(folder, *push, downstream=downstream)
    rest = drain(opened(folder, downstream=downstream))
    assert rest.pop(rest.index("data:,x"))
    assert [url.rpartition("/")[2] for url in rest] == ["first", "page", "start", "last"]


@BOTH
def test_what_a_killed_crawl_of_scrapys_queue_left_comes(folder, downstream):
    killed(folder, *URLS, queue="scrapys")
    assert Counter(drain(opened(folder))) == Counter(URLS)


@BOTH
def test_a_crawl_that_was_closed_and_then_killed(folder, downstream):
    queue = opened(folder, downstream=downstream)
    for url in URLS:
        queue.push(Request(url))
    state = queue.close()
    more = [f"https://{host}.example/more" for host in "cde"]
    taken = killed(
        folder,
        *more,
        ("https://a.example/x", 7, False),
        state=state,
        pop=50,
        downstream=downstream,
    )
    queue = opened(folder, downstream=downstream, state=state)
    came = Counter(drain(queue))
    assert came >= Counter([*URLS, *more, "https://a.example/x"]) - Counter(taken)
    assert max(came.values()) == 1
    assert queue.close() == {}


@BOTH
def test_after_two_kills_in_a_row_all_comes_still(folder, downstream):
    taken = killed(folder, *URLS[:60], downstream=downstream, pop=10)
    taken += killed(folder, *URLS[60:], downstream=downstream, pop=10)
    came = Counter(drain(opened(folder, downstream=downstream)))
    assert came >= Counter(URLS) - Counter(taken)
    assert max(came.values()) == 1


@BOTH
def test_what_was_salvaged_opens_with_scrapys_queue(folder, downstream):
    killed(folder, *URLS, downstream=downstream)
    state = opened(folder, downstream=downstream).close()
    queue = opened(folder, make=scrapys, downstream=downstream, state=state)
    assert Counter(drain(queue)) == Counter(URLS)


@BOTH
@pytest.mark.parametrize("end", [-60, -5, -1, None])
def test_a_record_that_was_not_written_whole_is_cut_off(folder, downstream, end):
    whole = ["https://a.example/1", "https://a.example/2"]
    killed(folder, *whole, downstream=downstream)
    (file,) = folder.glob("*/0/q00000" if downstream == "Fifo" else "*/0")
    content = file.read_bytes()
    file.write_bytes(content + b"\0\0\1\0torn" if end is None else content[:end])
    queue = opened(folder, downstream=downstream)
    queue.push(Request("https://a.example/3"))
    expected = [*(whole if end is None else whole[:1]), "https://a.example/3"]
    assert sorted(drain(queue)) == expected


def test_a_file_of_nonsense_is_put_aside_and_said(folder, caplog):
    killed(folder, "https://a.example/1", downstream="Lifo")
    (file,) = folder.glob("*/0")
    file.write_bytes(b"nonsense" * 100)
    queue = opened(folder, downstream="Lifo")
    assert len(queue) == 0
    assert "Nothing could be made of" in caplog.text
    queue.push(Request("https://a.example/2"))
    assert drain(queue) == ["https://a.example/2"]
    assert file.with_name("0.broken").read_bytes() == b"nonsense" * 100


def test_requests_that_cannot_be_read_are_left_and_said(folder, caplog):
    killed(folder, "https://a.example/1")
    (file,) = folder.glob("*/0/q00000")
    content = file.read_bytes()
    file.write_bytes(content.replace(b"https", b"\xff\xff\xff\xff\xff"))
    assert len(opened(folder)) == 0
    assert "is left as it is" in caplog.text
    assert file.exists()


@pytest.mark.parametrize(
    ("pushed", "taken", "again"),
    [
        (2, 0, 0),
        (3, 0, 0),
        (4, 0, 0),
        (7, 0, 0),
        (3, 4, None),
        (9, 3, 0),
        (9, 6, 4),
        (11, 8, 8),
    ],
)
def test_a_fifo_queue_of_several_files_comes_from_the_one_that_was_read(
    folder, pushed, taken, again
):
    """Each file has four requests, and is removed when the last one is taken."""
    queue = opened(folder)
    queue.push(Request("https://a.example/0"))
    state = queue.close()
    (info,) = folder.glob("*/0/info.json")
    info.write_text(info.read_text().replace("100000", "4"))
    urls = [f"https://a.example/{n}" for n in range(pushed + 1)]
    killed(folder, *urls[1:], state=state, pop=taken)
    queue = opened(folder, state=state)
    expected = [] if again is None else urls[again:]
    assert len(queue) == len(expected)
    queue.push(Request("https://a.example/last"))
    assert drain(queue) == [*expected, "https://a.example/last"]


def test_a_file_that_was_read_to_its_end_since_the_crawl_before_is_not_missed(folder):
    queue = opened(folder)
    queue.push(Request("https://a.example/0"))
    state = queue.close()
    (info,) = folder.glob("*/0/info.json")
    info.write_text(info.read_text().replace("100000", "4"))
    queue = opened(folder, state=state)
    urls = [f"https://a.example/{n}" for n in range(10)]
    for url in urls[1:]:
        queue.push(Request(url))
    state = queue.close()
    (folder / "active.json").write_text(json.dumps(state))
    killed(folder, state=state, pop=6)
    assert drain(opened(folder, state=state)) == urls[4:]


@pytest.mark.skipif(DOWNSTREAM["SQLite"] is None, reason="no such queue in this Scrapy")
def test_a_disk_queue_of_another_kind_knows_by_itself(folder):
    taken = killed(folder, *URLS, downstream="SQLite", pop=30)
    queue = opened(folder, downstream="SQLite")
    assert Counter(drain(queue)) == Counter(URLS) - Counter(taken)


def test_what_is_older_than_the_state_is_not_counted(folder, caplog):
    caplog.set_level("INFO")
    killed(folder, "https://a.example/1")
    (folder / "active.json").write_text("{}")
    assert len(opened(folder)) == 0
    assert "were found" not in caplog.text
