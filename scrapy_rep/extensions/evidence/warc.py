"""Evidence as WARC 1.1 (ISO 28500).

robots.txt files are response records, and lines are metadata records.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http import HTTPStatus
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]
from warcio.exceptions import ArchiveLoadFailed  # type: ignore[import-untyped]
from warcio.statusandheaders import StatusAndHeaders  # type: ignore[import-untyped]
from warcio.warcwriter import WARCWriter  # type: ignore[import-untyped]

from scrapy_rep.extensions.cited_file import CitedFile, iso_time
from scrapy_rep.extensions.evidence.parts import DAMAGE, Found, Line, Parts, is_about
from scrapy_rep.utils.text import printable

_BLOCK: Final = 64 * 1024
_GZIP: Final = zlib.MAX_WBITS + 16


class Warc(Parts):
    """Parts with WARC records, for lines and robots.txt files. Each record is a gzip member."""

    def write(self, lines: Sequence[Line]) -> None:
        out = BytesIO()
        writer = _make_writer(out)
        new_files = [line.new_file for line in lines if line.new_file is not None]
        for line in lines:
            file = line.new_file
            if file is not None and _has_content(file):
                record = _make_response(writer, file)
                writer.write_record(record)
                file.record_id = _header(record, "WARC-Record-ID")
            writer.write_record(_make_metadata(writer, line, line.encode(self._common_members)))
        try:
            self._append(out.getvalue(), len(lines))
        except OSError:
            for file in new_files:
                file.record_id = None
            raise

    def find(self, url: str, damaged: set[Path]) -> Iterator[Found]:
        if not self._path.is_file():
            raise FileNotFoundError(2, "there is no such file")
        parts = list(self.existing())
        damaged.update(filter(_is_damaged, parts))
        found: list[tuple[dict[str, Any], str | None, Path]] = []
        for part in parts:
            for record in _read_records(part):
                # The last record of a killed crawl may be incomplete JSON.
                with suppress(*DAMAGE):
                    if record.rec_type == "metadata" and _header(record, "WARC-Target-URI") == url:
                        values = json.loads(record.content_stream().read())
                        if is_about(values, url):
                            found.append((values, _header(record, "WARC-Refers-To"), part))
        sought = {refers_to for _, refers_to, _ in found} - {None}
        texts: dict[str | None, bytes] = {}
        for part in parts if sought else ():
            for record in _read_records(part):
                if (name := _header(record, "WARC-Record-ID")) in sought:
                    texts[name] = record.content_stream().read()
        for values, refers_to, part in found:
            yield Found.checked(values, texts.get(refers_to), part)

    def _part_path(self, number: int) -> Path:
        if number == 1:
            return self._path
        return self._path.with_name(
            f"{self._path.name.removesuffix('.warc.gz')}-{number:05}.warc.gz"
        )

    def _header_of_part(self, path: Path) -> bytes:
        out = BytesIO()
        writer = _make_writer(out)
        info = {"software": "scrapy-rep", "format": "WARC File Format 1.1"}
        writer.write_record(writer.create_warcinfo_record(path.name, info))
        return out.getvalue()

    def _end_of_records(self, file: IO[bytes]) -> int | None:
        return end_of_members(file)


def end_of_members(file: IO[bytes]) -> int | None:
    """Return the offset after the last complete member of a gzip file (RFC 1952 §2.2).

    Return None if it contains anything but complete members and, at its end, an incomplete one.
    """
    file.seek(0)
    position = end = 0
    member = zlib.decompressobj(_GZIP)
    while data := file.read(_BLOCK):
        position += len(data)
        while data:
            try:
                member.decompress(data)
            except zlib.error:
                return None
            if not member.eof:
                break
            data = member.unused_data
            end = position - len(data)
            member = zlib.decompressobj(_GZIP)
    return end


def _is_damaged(path: Path) -> bool:
    with path.open("rb") as file:
        return end_of_members(file) is None


def _has_content(file: CitedFile) -> bool:
    return file.body is not None or (file.answer is not None and file.answer.status is not None)


def _make_writer(out: BytesIO) -> Any:
    return WARCWriter(out, gzip=True, warc_version="1.1")


def _make_record(
    writer: Any, url: str | None, kind: str, content: bytes, headers: dict[str, str], **more: Any
) -> Any:
    payload = {"payload": BytesIO(content), "length": len(content)}
    return writer.create_warc_record(url, kind, **payload, warc_headers_dict=headers, **more)


def _make_metadata(writer: Any, line: Line, content: bytes) -> Any:
    """Return the record of ``line``, as metadata of the robots.txt to which it refers, if any."""
    headers = {"WARC-Date": line.values["time"]}
    if line.file is not None and line.file.record_id is not None:
        headers["WARC-Refers-To"] = line.file.record_id
    url = line.values.get("url") or (None if line.file is None else line.file.url)
    kind = {"warc_content_type": "application/json"}
    return _make_record(writer, url, "metadata", content, headers, **kind)


def _make_response(writer: Any, file: CitedFile) -> Any:
    """Return a record of ``file`` with what is known: status, some headers, and the decoded text.

    It is a response record; for the file of an override, which has no response, a resource record.
    """
    body, answer = file.body or b"", file.answer
    if answer is None:
        headers, kind = {"WARC-Date": iso_time(file.asked)}, {"warc_content_type": "text/plain"}
        return _make_record(writer, file.url, "resource", body, headers, **kind)
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
    status = StatusAndHeaders(f"{answer.status} {phrase}", http, protocol="HTTP/1.1")
    return _make_record(writer, file.url, "response", body, headers, http_headers=status)


def _header(record: Any, name: str) -> str | None:
    value: str | None = record.rec_headers.get_header(name)
    return value


def _read_records(path: Path) -> Iterator[Any]:
    """Yield the records of a part, until one that is incomplete or can't be read."""
    # warcio raises AttributeError if the header of a record is incomplete.
    with path.open("rb") as file, suppress(ArchiveLoadFailed, EOFError, AttributeError):
        yield from ArchiveIterator(file)
