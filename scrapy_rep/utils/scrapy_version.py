"""The check that Scrapy is not too old."""

from __future__ import annotations

from typing import Final

import scrapy

_OLDEST: Final = (2, 14)
"""The version in pyproject.toml. An older one may have been installed afterwards."""


def check_scrapy() -> None:
    """Raise ImportError if Scrapy is too old."""
    if scrapy.version_info < _OLDEST:
        raise ImportError(
            f"scrapy-rep requires Scrapy {'.'.join(map(str, _OLDEST))} or newer, "
            f"and this is Scrapy {scrapy.__version__}"
        )
