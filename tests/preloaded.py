"""What most crawls and commands import; programs are forked from a process that has it: forking.py.

No reactor is among it: which one runs is up to each program.
"""

import gc
from contextlib import suppress

import scrapy.crawler  # noqa: F401 - it is there then
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object

from tests import forking  # noqa: F401 - the same
from tests.waiting import modules


def _components():
    for value in vars(default_settings).values():
        named = [*value, *value.values()] if isinstance(value, dict) else [value]
        yield from (name for name in named if isinstance(name, str) and name.startswith("scrapy."))


modules()
for path in _components():
    with suppress(Exception):  # some want what is not installed everywhere
        load_object(path)
# What is forked then shares its memory, as nobody writes the collector's marks into it.
gc.collect()
gc.freeze()
