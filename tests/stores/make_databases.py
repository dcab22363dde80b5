"""Write the database file of this version of the schema: ``python -m tests.stores.make_databases``.

Files of versions that have been released are never written again: that they can still be read is
what they are kept for.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from scrapy_rep.stores.sqlite_file import FORMAT
from scrapy_rep.utils.sqlite import make_schema
from tests.stores.records import every

DIRECTORY = Path(__file__).with_name("databases")


def make(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        make_schema(connection, FORMAT)
        for index, record in enumerate(records()):
            values = (str(record.origin), 1_790_000_000.0 + index, record.encode())
            connection.execute(
                "INSERT INTO records (origin, written, data) VALUES (?, ?, ?)", values
            )
        connection.execute("PRAGMA journal_mode = WAL")


def records():
    """One record of each kind, small."""
    made = [every(f"https://site-{index}.example")[index] for index in range(5)]
    return [record for record in made if record.copy is None or len(record.copy.body) < 1_000]


def main():
    DIRECTORY.mkdir(exist_ok=True)
    path = DIRECTORY / f"v{FORMAT.version}.sqlite"
    if path.exists():
        print(f"{path.name} is there already")
        return
    make(path)
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
