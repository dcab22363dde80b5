"""The command ``scrapy robots``, and settings for commands of Scrapy's own.

``robots`` has the options of all subcommands; each is a module, which asks through ``spider``.
"""

from scrapy_rep.utils.scrapy_version import check_scrapy

# Scrapy imports this package before it runs any command.
try:
    check_scrapy()
except ImportError as _error:
    raise SystemExit(str(_error)) from None

from scrapy_rep.commands.interactive import add_settings
from scrapy_rep.commands.robots import Command

__all__ = ["Command"]

add_settings()
