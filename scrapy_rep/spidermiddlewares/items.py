"""Sets fields of items to the results for the page from which they were scraped."""

from __future__ import annotations

from typing import Any, Final

from itemadapter import ItemAdapter
from scrapy import Spider
from scrapy.http import Response

from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_url

logger: Final = LimitedLogger(__name__)


def set_item_field(
    item: Any, field: str, value: Any, response: Response | None, spider: Spider | None
) -> None:
    """Set a field of an item, if its class or dict has a field with this name."""
    # An error that is raised here would end the callback, and all that it has not yet yielded would
    # be lost.
    try:
        if ItemAdapter.is_item(item):
            adapter = ItemAdapter(item)
            if field in adapter.field_names():
                adapter[field] = value
    except Exception:
        logger.exception(
            "Error while setting %s of an item of %s",
            field,
            printable_url(response),
            extra={"spider": spider},
        )
