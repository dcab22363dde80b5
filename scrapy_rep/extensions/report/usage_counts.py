"""The counts of a report about usage preferences: results, statements and licenses.

A usage preference is a statement of a site about a use of its pages, such as training AI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy_rep.protocol.usage.statement import LICENSE
from scrapy_rep.protocol.usage.usage import Usage
from scrapy_rep.utils.text import without_credentials

MAX_KINDS: Final = 1_000
"""Maximum number of different statements, and of licenses, that are counted separately."""
_BEYOND: Final = "(further ones)"


@dataclass
class UsageCounts:
    """Numbers of pages by their usage preferences."""

    results: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of pages by declared purpose and result."""
    statements: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Number of pages by source, label and value of a statement."""
    licenses: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of pages by origin and URI of a license."""
    refused: int = 0
    """Number of pages for which a declared purpose is refused."""

    def add(self, origin: str, usage: Usage, results: Mapping[str, str], *, refused: bool) -> None:
        """Count a page with the usage preferences ``usage``, judged with ``results``."""
        self.results.update(results.items())
        self.refused += refused
        keys = {(s.source, s.label, s.value) for s in usage.statements if s.source != LICENSE}
        uris = {without_credentials(s.raw) for s in usage.statements if s.source == LICENSE}
        for key in keys:
            _count_up_to_limit(self.statements, key, (_BEYOND, "", ""))
        for uri in uris:
            _count_up_to_limit(self.licenses, (origin, uri), (_BEYOND, ""))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, the most frequent first."""
        return {
            "refused": self.refused,
            "results": [
                {"purpose": purpose, "result": result, "pages": pages}
                for (purpose, result), pages in self.results.most_common()
            ],
            "statements": [
                {"source": source, "label": label, "value": value, "pages": pages}
                for (source, label, value), pages in self.statements.most_common()
            ],
            "licenses": [
                {"origin": origin, "uri": uri, "pages": pages}
                for (origin, uri), pages in self.licenses.most_common()
            ],
        }


def _count_up_to_limit(counts: Counter[Any], key: Any, beyond: Any) -> None:
    counts[key if key in counts or len(counts) < MAX_KINDS else beyond] += 1
