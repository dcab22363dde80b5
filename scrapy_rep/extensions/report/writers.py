"""The forms of a report: lines as the crawl goes, or all at its end, as JSON or as a page."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.lines import as_json, end_of_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from scrapy_rep.extensions.lines import Line

LINES = ".jsonl"


class LinesForm:
    """JSON Lines: what was written stays, however the crawl ends."""

    def __init__(self, path: Path, *, resumes: bool) -> None:
        """Open the file, to append to it where a crawl is resumed. Raises OSError."""
        self._file = path.open("ab+", buffering=0)
        # Of a crawl that was killed the last line may have no end.
        self._file.truncate(end_of_lines(self._file) if resumes else 0)

    def write(self, lines: Sequence[Line]) -> None:
        """Write lines, all or none. Raises OSError."""
        data = memoryview(b"".join(f"{as_json(line.values)}\n".encode() for line in lines))
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            with suppress(OSError):  # the first one says what is wrong
                self._file.truncate(end)
            raise

    def close(self) -> None:
        """Write no more."""
        self._file.close()


@contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Give a file that takes the place of ``path`` only when it is whole. Raises OSError."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            yield file
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    new.replace(path)


def renderer_of(path: Path) -> Callable[[dict[str, Any]], str]:
    """Return what makes the text of a report at ``path``. Raises SettingsError."""
    if not path.parent.is_dir():
        raise SettingsError(f"REP_REPORT is {str(path)!r}: there is no such directory")
    render: Callable[[dict[str, Any]], str] = as_json
    if path.suffix == ".html":
        try:
            from scrapy_rep.extensions.report.page import render  # noqa: PLC0415 - Jinja2 is an extra
        except ImportError:
            raise SettingsError(
                f"REP_REPORT is {str(path)!r}: HTML takes Jinja2, which isn't installed: "
                "pip install scrapy-rep[report]"
            ) from None
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise SettingsError(
            f"REP_REPORT is {str(path)!r}: it can't be written: {error.strerror}"
        ) from None
    return render
