"""The texts of robots.txt in a report, by their hash: bounded, whatever sites send."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final

from scrapy_rep.utils.lru import BoundedCache

MAX_TEXT: Final = 64 * 1024
"""Bytes that are kept of each."""
MAX_TEXTS: Final = 4 * 1024**2
"""Bytes of all; those that dropped nothing for the longest time are let go of first."""
_MAX_COUNT: Final = 10_000


class Texts:
    """Texts that were met."""

    def __init__(self) -> None:
        self._held: BoundedCache[str, tuple[bytes, int]] = BoundedCache(
            max_entries=_MAX_COUNT, max_bytes=MAX_TEXTS
        )

    def add(self, body: bytes) -> str:
        """Keep a text, and return its hash."""
        name = sha256(body).hexdigest()
        if self._held.get(name) is None:
            kept = body[:MAX_TEXT]
            self._held.put(name, (kept, len(body) - len(kept)), len(kept))
        return name

    def used(self, name: str | None) -> None:
        """Tell that the text dropped a request."""
        if name is not None:
            self._held.get(name)

    def as_dict(self) -> dict[str, Any]:
        """Return the texts by hash, and of each how many bytes the whole has beyond it."""
        return {
            name: {"text": kept.decode("utf-8", "backslashreplace"), "left_out": left_out}
            for name, (kept, left_out) in zip(self._held, self._held.values(), strict=True)
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Texts:
        """Return what ``as_dict`` was made of."""
        texts = cls()
        for name, value in values.items():
            kept = value["text"].encode()
            texts._held.put(name, (kept, value["left_out"]), len(kept))
        return texts
