"""``scrapy robots``: what a robots.txt says, on the command line."""

from scrapy_rep.commands.robots import Command

__all__ = ["Command"]
