"""The texts of robots.txt files in a report, by their hash. Their total size is limited."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from scrapy_rep.utils.lru import BoundedCache

MAX_TEXT: Final = 64 * 1024
"""Maximum size of a text in bytes. Longer texts are cut."""
MAX_TEXTS: Final = 4 * 1024**2
"""Maximum total size of all texts in bytes. Above it, the least recently used are removed."""
_MAX_COUNT: Final = 10_000


class Texts:
    """The texts of robots.txt files, by their SHA-256."""

    def __init__(self) -> None:
        self._texts: BoundedCache[str, tuple[bytes, int]] = BoundedCache(
            max_entries=_MAX_COUNT, max_bytes=MAX_TEXTS
        )

    def add(self, body: bytes) -> str:
        """Add the text ``body``; return its SHA-256 in hex."""
        name = sha256(body).hexdigest()
        if self._texts.get(name) is None:
            text = body[:MAX_TEXT]
            self._texts.put(name, (text, len(body) - len(text)), len(text))
        return name

    def mark_used(self, name: str | None) -> None:
        """Mark the text with the hash ``name`` as used, as a request was dropped by its rule."""
        if name is not None:
            self._texts.get(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the texts by hash, each with the number of bytes that were cut."""
        return {
            name: {"text": text.decode("utf-8", "backslashreplace"), "left_out": left_out}
            for name, (text, left_out) in zip(self._texts, self._texts.values(), strict=True)
        }
