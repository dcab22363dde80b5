"""Chooses the form of a report, JSON or HTML, and replaces its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.robots_file import as_json


@contextmanager
def open_replacement(path: Path) -> Iterator[IO[str]]:
    """Open a temporary file, which replaces ``path`` at the end of the ``with`` block.

    After an error ``path`` is unchanged. Raises OSError if the file can't be written.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with new.open("w", encoding="utf-8") as file:
            yield file
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    new.replace(path)


def renderer_of(path: Path) -> Callable[[dict[str, Any]], str]:
    """Return the function that renders a report as JSON, or as HTML if ``path`` ends in .html.

    The file is created if it doesn't exist. Raises SettingsError if ``path`` can't be written, or
    Jinja2 is required and not installed.
    """
    if not path.parent.is_dir():
        raise SettingsError(f"REP_REPORT is {str(path)!r}: there is no such directory")
    render: Callable[[dict[str, Any]], str] = as_json
    if path.suffix == ".html":
        try:
            from scrapy_rep.extensions.report.page import render
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
