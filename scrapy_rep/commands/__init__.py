"""The command ``scrapy robots``, and default settings for some of Scrapy's own commands.

Each subcommand of ``robots`` is a module, and an entry in ``robots.py``. A subcommand that needs a
robots.txt of a site runs a crawl, with the spider in ``spider.py``.
"""

from scrapy_rep.utils.scrapy_version import check_scrapy

# Scrapy imports this package before it runs any command: with an older version of Scrapy, all
# commands end with this message.
try:
    check_scrapy()
except ImportError as _error:
    raise SystemExit(str(_error)) from None

from scrapy_rep.commands.robots import Command
from scrapy_rep.commands.scrapy_command_settings import add_settings

__all__ = ["Command"]

add_settings()
