"""The public names, signatures and formats, as public.txt has them: a change of it is seen in review.

After a change that is meant: `python -m tests.packaging.test_public` writes public.txt again.
"""

import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import scrapy_rep
from scrapy_rep import protocol, signals, stats
from scrapy_rep.commands.arguments import OPTIONS
from scrapy_rep.decision.usage import PURPOSES_KEY, USAGE_KEY
from scrapy_rep.protocol import record
from scrapy_rep.scheduler import request_table
from scrapy_rep.settings import Options
from scrapy_rep.spidermiddlewares import metatags, usage
from scrapy_rep.stores import sqlite

FILE = Path(__file__).with_name("public.txt")
PROTOCOL = ("lint", "meta_tags", "origin", "product_tokens", "usage", "verdict")
"""Modules of the protocol that the docs name."""


def signature(value):
    if inspect.isclass(value) and not (issubclass(value, tuple) or is_dataclass(value)):
        (home,) = [each for each in value.__mro__ if "__init__" in vars(each)][:1]
        if not home.__module__.startswith("scrapy_rep"):
            return ""  # that of a class of Scrapy or Python, which other versions may change
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    # Without types: mypy checks these, and versions of Python write them differently.
    names = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    return str(found.replace(parameters=names, return_annotation=found.empty))


def imports():
    modules = [scrapy_rep, protocol, *(import_module(f"scrapy_rep.protocol.{n}") for n in PROTOCOL)]
    for module in modules:
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        for name in sorted(names):
            value = getattr(module, name)
            if name == "__version__":
                continue
            yield f"{module.__name__}.{name}{signature(value)}"
            if not inspect.isclass(value):
                continue
            own = [c for c in value.__mro__ if c.__module__.startswith("scrapy_rep")]
            for member in sorted({m for c in own for m in vars(c) if not m.startswith("_")}):
                static = inspect.getattr_static(value, member)
                call = getattr(static, "__func__", static)
                yield f"{module.__name__}.{name}.{member}{signature(call) if callable(call) else ''}"


def settings():
    for option in fields(Options):
        yield f"{option.metadata['name']} = {option.default!r}"


def rows():
    yield "imports", imports()
    yield "settings", settings()
    yield "stats", (v for n, v in sorted(vars(stats).items()) if n.isupper() and isinstance(v, str))
    yield "signals", sorted(name for name in vars(signals) if name.startswith("robotstxt_"))
    yield (
        "meta and fields",
        [
            signals.META_KEY,
            f"{signals.META_KEY}.{USAGE_KEY}",
            PURPOSES_KEY,
            metatags.TAGS_KEY,
            metatags.ITEM_FIELD,
            usage.ITEM_FIELD,
        ],
    )
    yield "commands", (f"scrapy robots {option}" for option in sorted(OPTIONS))
    yield (
        "formats",
        [
            f"record {record.VERSION}",
            f"store in SQLite {sqlite.FORMAT.version} "
            f"(application_id {sqlite.FORMAT.application_id})",
            f"requests in JOBDIR {request_table.FORMAT.version} (application_id {request_table.FORMAT.application_id})",
        ],
    )


def text():
    parts = ["# Written by `python -m tests.packaging.test_public`."]
    for heading, lines in rows():
        parts += ["", f"[{heading}]", *dict.fromkeys(lines)]
    return "\n".join(parts) + "\n"


def test_the_public_names_signatures_and_formats_are_those_of_the_file():
    assert text() == FILE.read_text(encoding="utf-8")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
