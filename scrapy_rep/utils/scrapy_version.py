"""Checks that the installed version of Scrapy is not too old."""

from typing import Final

import scrapy

_OLDEST: Final = (2, 14)
"""The minimum version in pyproject.toml. An older version may be installed after scrapy-rep."""


def check_scrapy() -> None:
    """Raise ImportError if Scrapy is older than the minimum version."""
    if scrapy.version_info < _OLDEST:
        raise ImportError(
            f"scrapy-rep requires Scrapy {'.'.join(map(str, _OLDEST))} or newer, "
            f"and this is Scrapy {scrapy.__version__}"
        )
