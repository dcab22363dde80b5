"""The command ``scrapy robots``, and settings for commands of Scrapy's own.

``robots`` has the options of all subcommands; each is a module, which asks through ``spider``.
"""

from scrapy_rep.commands.interactive import add_settings
from scrapy_rep.commands.robots import Command

__all__ = ["Command"]

# Scrapy imports this before it runs any command.
add_settings()
