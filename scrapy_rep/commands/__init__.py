"""The command ``scrapy robots``.

``robots`` has the options of all subcommands; each is a module, which asks through ``spider``.
"""

from scrapy_rep.commands.robots import Command

__all__ = ["Command"]
