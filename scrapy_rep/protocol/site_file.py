"""The files of a site that a crawler reads before its pages: robots.txt and tdmrep.json."""

from __future__ import annotations

from typing import NamedTuple

from scrapy_rep.protocol.origin import ROBOTSTXT, Origin, split_url


class SiteFile(NamedTuple):
    """The robots.txt or tdmrep.json of an origin, without its content: its URL, its key in stores.

    A worker that fetches it has its lease, the right to do so for a time; other workers wait.
    """

    origin: Origin
    path: str = ROBOTSTXT
    """``/robots.txt``, or ``/.well-known/tdmrep.json``."""

    @classmethod
    def from_key(cls, key: str) -> SiteFile:
        """Return the file with this ``key``, whatever its path. Raises ValueError if it is none."""
        origin, path = split_url(key)
        file = cls(origin) if path == "/" else cls(origin, path)
        if file.key != key:
            raise ValueError(f"no file of a site: {key!a}")
        return file

    @property
    def key(self) -> str:
        """The key of the file in stores: the origin for robots.txt, else the URL."""
        return str(self.origin) if self.is_robotstxt else self.url

    @property
    def url(self) -> str:
        """The URL of the file, before any redirect."""
        return f"{self.origin}{self.path}"

    @property
    def name(self) -> str:
        """The name of the file: ``robots.txt``, or ``tdmrep.json``."""
        return self.path.rpartition("/")[2]

    @property
    def is_robotstxt(self) -> bool:
        """Whether the file is robots.txt, whose rules decide which URLs may be fetched."""
        return self.path == ROBOTSTXT

    def __str__(self) -> str:
        return f"{self.name} of {self.origin}"
