"""The lines of the evidence."""

from __future__ import annotations

from typing import Any, NamedTuple

from scrapy_rep.extensions.robots_file import RobotsFile, as_json


class Line(NamedTuple):
    """One line of the evidence, about a request, a robots.txt, or the crawl."""

    values: dict[str, Any]
    file: RobotsFile | None = None
    """The robots.txt or tdmrep.json to which the line refers; None if there is none."""

    @property
    def is_of_file(self) -> bool:
        """Whether the line is about a robots.txt or tdmrep.json, whose text is written with it."""
        return self.file is not None and self.values["kind"] in {"robotstxt", "tdmrep"}

    @property
    def text(self) -> bytes | None:
        """The text of robots.txt to write with the line; None if there is none to write."""
        return self.file.body if self.is_of_file and self.file is not None else None

    @property
    def nbytes(self) -> int:
        """Size of ``text`` in bytes."""
        return len(self.text or b"")

    def drop_text(self) -> None:
        """Remove ``text`` from memory. The values of its file, with the hash, are kept."""
        if self.text is not None and self.file is not None and self.file.as_json:
            self.file.body = None

    def encode(self, tail: str) -> bytes:
        """Return the line as JSON. ``tail`` has the members that are the same in all lines."""
        file = "null" if self.file is None else self.file.as_json
        name = "tdmrep" if self.values["kind"] == "tdmrep" else "robotstxt"
        return f'{as_json(self.values)[:-1]},"{name}":{file},{tail}}}'.encode("ascii")
