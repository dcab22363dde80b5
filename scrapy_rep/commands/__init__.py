"""The command ``scrapy robots``, and default settings for some of Scrapy's own commands.

Each subcommand of ``robots`` is a module, and an entry in ``robots.py``. A subcommand that needs a
robots.txt of a site runs a crawl, that in ``crawl.py``.
"""

from scrapy.utils.misc import load_object

from scrapy_rep.commands.robots import Command
from scrapy_rep.settings import INTERACTIVE

__all__ = ["Command"]

# A user waits for the results of these commands. Their classes are changed, and not replaced, as
# Scrapy checks ``requires_project`` only for its own commands and those of the project.
for _name in ("check", "fetch", "parse", "shell", "view"):
    _command = load_object(f"scrapy.commands.{_name}.Command")
    _waited_for = {INTERACTIVE: True, "REP_TIMEOUT": 10.0}
    _command.default_settings = {**_command.default_settings, **_waited_for}
