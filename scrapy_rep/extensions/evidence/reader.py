"""Reads evidence: the lines about a URL, and the robots.txt texts to which they refer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from scrapy_rep.extensions.evidence import jsonl
from scrapy_rep.extensions.evidence.formats import WARC
from scrapy_rep.extensions.evidence.part_files import is_damaged
from scrapy_rep.extensions.robots_file import as_json

_OF_URLS: Final = {"page", "failed", "drop", "usage"}
DAMAGE: Final = (ValueError, LookupError, TypeError, AttributeError)
"""Exceptions that are raised while a line is read that is not JSON, or that lacks members."""


class Found(NamedTuple):
    """A line of the evidence, and the text of the robots.txt to which it refers."""

    values: dict[str, Any]
    """The members of the line."""
    text: bytes | None
    """The text of robots.txt. None if the line refers to no text, or if the text is missing or
    doesn't have the hash in the line."""
    part: Path
    """The file that contains the line."""


def find_lines(path: Path, url: str) -> tuple[list[Found], set[Path]]:
    """Return the lines about ``url``, sorted by time, and the files that are damaged.

    Raises OSError if a file can't be read, and ImportError if ``path`` is a WARC file and warcio is
    not installed.
    """
    damaged: set[Path] = set()
    reading = _lines_in_warc if path.name.endswith(WARC) else _lines_in_folder
    found = list(reading(path, url, damaged))
    return sorted(found, key=lambda each: str(each.values.get("time"))), damaged


def _lines_in_folder(folder: Path, url: str, damaged: set[Path]) -> Iterator[Found]:
    if not folder.is_dir():
        is_file = "it is a file, not a directory, and its name does not end in .warc.gz"
        raise FileNotFoundError(2, is_file if folder.exists() else "there is no such directory")
    sought = f'"url":{as_json(url)}'.encode()
    for part in _existing_parts(lambda number: jsonl.part_path(folder, number)):
        with part.open("rb") as file:
            for line in file:
                # Most lines are about other URLs, and are not parsed. If a crawl was killed, the
                # last line may be incomplete.
                if sought in line and line.endswith(b"\n"):
                    try:
                        values = json.loads(line)
                        if _is_about(values, url):
                            yield Found(values, _read_text(folder, values), part)
                    except DAMAGE:
                        damaged.add(part)


def _read_text(folder: Path, values: dict[str, Any]) -> bytes | None:
    digest = (values["robotstxt"] or {}).get("sha256")
    if digest is None:
        return None
    try:
        return _text_if_unchanged(jsonl.text_path(folder, digest).read_bytes(), digest)
    except FileNotFoundError:
        return None


def _lines_in_warc(path: Path, url: str, damaged: set[Path]) -> Iterator[Found]:
    from scrapy_rep.extensions.evidence.warc import part_path, read_records

    if not path.is_file():
        raise FileNotFoundError(2, "there is no such file")
    parts = list(_existing_parts(lambda number: part_path(path, number)))
    found: list[tuple[dict[str, Any], str | None, Path]] = []
    damaged.update(filter(is_damaged, parts))
    for part in parts:
        for record in read_records(part):
            # The last record of a killed crawl may be incomplete JSON.
            with suppress(*DAMAGE):
                if record.kind == "metadata" and record.url == url:
                    values = json.loads(record.body())
                    if _is_about(values, url):
                        found.append((values, record.refers_to, part))
    sought = {refers_to for _, refers_to, _ in found} - {None}
    texts: dict[str | None, bytes] = {}
    for part in parts if sought else ():
        for record in read_records(part):
            if record.id in sought:
                texts[record.id] = record.body()
    for values, refers_to, part in found:
        digest = (values["robotstxt"] or {}).get("sha256")
        text = texts.get(refers_to)
        checked = None if text is None or digest is None else _text_if_unchanged(text, digest)
        yield Found(values, checked, part)


def _existing_parts(name: Callable[[int], Path]) -> Iterator[Path]:
    return takewhile(Path.exists, map(name, count(1)))


def _is_about(values: dict[str, Any], url: str) -> bool:
    return values["kind"] in _OF_URLS and values["url"] == url


def _text_if_unchanged(text: bytes, digest: str) -> bytes | None:
    return text if sha256(text).hexdigest() == digest else None
