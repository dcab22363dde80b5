"""Which download handler serves a scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def handler_of(settings: BaseSettings, scheme: str) -> Any:
    """Return the class of the handler of a scheme; None where none is set, or it can't be loaded.

    Scrapy tells of the latter when it comes to a request.
    """
    try:
        return load_object(settings.getwithbase("DOWNLOAD_HANDLERS")[scheme])
    except Exception:  # noqa: BLE001 - whatever its module raises
        return None
