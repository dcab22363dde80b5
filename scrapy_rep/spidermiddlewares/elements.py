"""The meta elements of a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scrapy.http import HtmlResponse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

_HAS_SOME: Final = re.compile(r"<meta\b", re.IGNORECASE).search


def meta_elements(response: Response) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the meta elements of a page."""
    if isinstance(response, HtmlResponse) and _HAS_SOME(response.text):
        # Selectors would make a dict of all attributes of an element for each that is asked for.
        for element in response.selector.root.iter("meta"):
            yield element.get("name", ""), element.get("content", "")
