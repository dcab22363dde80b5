"""Write the file of a new version of the schema: ``python -m tests.stores.make_databases``."""

from contextlib import closing
from pathlib import Path

from scrapy_rep.stores.sqlite import FORMAT
from scrapy_rep.utils.sqlite import open_file
from tests.stores.records import available, put, unavailable, unreachable

DIRECTORY = Path(__file__).with_name("databases")


def make(path):
    with closing(open_file(path, FORMAT)) as connection:
        for index, record in enumerate(records()):
            change = put(record)
            body = b"" if record.copy is None else put(available(change.key)).body
            values = change.key, 1_790_000_000.0 + index, change.state, body
            connection.execute("INSERT INTO records VALUES (?, ?, ?, ?)", values)


def records():
    first, second, third, fourth = (f"https://site-{index}.example" for index in range(4))
    copy = available(fourth).copy
    return [
        available(first),
        unavailable(second),
        unreachable(third),
        unreachable(fourth, copy=copy),
    ]


def main():
    DIRECTORY.mkdir(exist_ok=True)
    make(DIRECTORY / f"v{FORMAT.version}.sqlite")


if __name__ == "__main__":
    main()
