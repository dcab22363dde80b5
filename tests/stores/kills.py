"""Kill a process in the middle of its writes, many times: ``kills.py FILE ROUNDS``.

Prints, as JSON, how many records were said to be written, and which of them were lost. Processes
are forked, as starting Python fifty times would take a minute.
"""

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.stores.records import available
from tests.stores.test_contract import sqlite
from tests.stores.test_contract import write as put_all

AT_ONCE = 20


def origin(round_, index, number):
    return f"https://site-{round_}-{index}-{number}.example"


def write(path, round_, told):
    store = sqlite(path)
    for index in count():
        origins = [origin(round_, index, n) for n in range(AT_ONCE)]
        put_all(store, *(available(each, b"#" * 9_000) for each in origins))
        os.write(told, b".")


def kill_one(path, round_, seconds):
    """Return how many batches a process wrote before it was killed."""
    told, tell = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(told)
        write(path, round_, tell)
        os._exit(1)
    os.close(tell)
    batches = len(os.read(told, 1))
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    while more := os.read(told, 4_096):
        batches += len(more)
    os.close(told)
    return batches


def main():
    path, rounds = Path(sys.argv[1]), int(sys.argv[2])
    written, lost, checks = 0, [], set()
    for round_ in range(rounds):
        batches = kill_one(path, round_, 0.0013 * round_)
        with closing(sqlite3.connect(path)) as connection:
            checks.update(*connection.execute("PRAGMA quick_check").fetchall())
            held = {name for (name,) in connection.execute("SELECT origin FROM records")}
            connection.execute("DELETE FROM records")
            connection.commit()
        told = {origin(round_, i, n) for i in range(batches) for n in range(AT_ONCE)}
        written += len(told)
        lost += sorted(told - held)
    print(json.dumps({"written": written, "lost": lost, "checks": sorted(checks)}))


if __name__ == "__main__":
    main()
