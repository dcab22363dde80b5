"""SQL on a file of ours, past the code that has written it."""

import sqlite3
from contextlib import closing

from tests.waiting import PATIENCE


def execute(path, statement, *values):
    """Execute a statement that is a transaction of its own, and return its rows."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as connection:
        return connection.execute(statement, values).fetchall()
