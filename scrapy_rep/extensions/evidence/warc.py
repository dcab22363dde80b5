"""Evidence as WARC 1.1 (ISO 28500).

robots.txt files are response records, and lines are metadata records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from scrapy_rep.extensions.evidence.part_files import Parts, end_of_members
from scrapy_rep.extensions.evidence.writer_thread import Line
from scrapy_rep.extensions.robots_file import RobotsFile, iso_time
from scrapy_rep.utils.text import printable


def part_path(path: Path, number: int) -> Path:
    """Return the path of the part with this number; that of the first part is ``path``."""
    if number == 1:
        return path
    return path.with_name(f"{path.name.removesuffix('.warc.gz')}-{number:05}.warc.gz")


class Warc:
    """Writes lines and robots.txt files as WARC records. Each record is a gzip member."""

    def __init__(self, path: Path, tail: str) -> None:
        """``tail`` has the members of the JSON object that are the same in all lines."""
        self._tail = tail
        self._parts = Parts(lambda number: part_path(path, number), end_of_members, _make_warcinfo)

    def write(self, lines: Sequence[Line]) -> None:
        """Write all lines, as metadata of the robots.txt to which they refer.

        Raises OSError if they can't be written.
        """
        out = BytesIO()
        writer = _make_writer(out)
        written = []
        for line in lines:
            file = line.file
            if line.is_of_file and file is not None and _has_record(file):
                record = _make_response(writer, file)
                writer.write_record(record)
                written.append((file, record.rec_headers.get_header("WARC-Record-ID")))
                file.record_id = written[-1][1]
            writer.write_record(self._make_metadata(writer, line))
        try:
            self._parts.append(out.getvalue())
        except OSError:
            for file, _ in written:
                file.record_id = None
            raise

    def close(self) -> None:
        """Close the current part."""
        self._parts.close()

    def _make_metadata(self, writer: Any, line: Line) -> Any:
        text = line.encode(self._tail)
        headers = {"WARC-Date": line.values["time"]}
        if line.file is not None and line.file.record_id is not None:
            headers["WARC-Refers-To"] = line.file.record_id
        return writer.create_warc_record(
            line.values.get("url") or (None if line.file is None else line.file.url),
            "metadata",
            payload=BytesIO(text),
            length=len(text),
            warc_content_type="application/json",
            warc_headers_dict=headers,
        )


def _has_record(file: RobotsFile) -> bool:
    return file.body is not None or (file.answer is not None and file.answer.status is not None)


def _make_writer(out: BytesIO) -> Any:
    return WARCWriter(out, gzip=True, warc_version="1.1")


def _make_warcinfo(path: Path) -> bytes:
    out = BytesIO()
    writer = _make_writer(out)
    info = {"software": "scrapy-rep", "format": "WARC File Format 1.1"}
    writer.write_record(writer.create_warcinfo_record(path.name, info))
    return out.getvalue()


def _make_response(writer: Any, file: RobotsFile) -> Any:
    """Return a record of ``file`` with what is known: status, some headers, and the decoded text.

    It is a response record; for the file of an override, which has no response, a resource record.
    """
    body, answer = file.body or b"", file.answer
    if answer is None:
        return writer.create_warc_record(
            file.url,
            "resource",
            payload=BytesIO(body),
            length=len(body),
            warc_content_type="text/plain",
            warc_headers_dict={"WARC-Date": iso_time(file.asked)},
        )
    headers = {"WARC-Date": iso_time(answer.at)}
    if answer.truncated:
        headers["WARC-Truncated"] = "length"
    fields = {
        "Cache-Control": answer.cache_control,
        "Age": answer.age,
        "Retry-After": answer.retry_after,
        "Content-Length": str(len(body)),
    }
    http = [(name, printable(value)) for name, value in fields.items() if value is not None]
    try:
        phrase = HTTPStatus(answer.status or 0).phrase
    except ValueError:
        phrase = ""
    return writer.create_warc_record(
        file.url,
        "response",
        payload=BytesIO(body),
        length=len(body),
        warc_headers_dict=headers,
        http_headers=StatusAndHeaders(f"{answer.status} {phrase}", http, protocol="HTTP/1.1"),
    )


class WarcRecord(NamedTuple):
    """A WARC record of a part."""

    id: str
    kind: str
    url: str | None
    refers_to: str | None
    body: Callable[[], bytes]
    """Reads the payload. It must be called before the next record is read."""


def read_records(path: Path) -> Iterator[WarcRecord]:
    """Yield the records of a part. The iteration ends before an incomplete record.

    Raises OSError if the file can't be read.
    """
    # warcio raises AttributeError if the header of a record is incomplete.
    with path.open("rb") as file, suppress(ArchiveLoadFailed, EOFError, AttributeError):
        for record in ArchiveIterator(file):
            header = record.rec_headers.get_header
            yield WarcRecord(
                header("WARC-Record-ID"),
                record.rec_type,
                header("WARC-Target-URI"),
                header("WARC-Refers-To"),
                record.content_stream().read,
            )
