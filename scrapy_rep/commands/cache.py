"""``scrapy robots cache``: lists, shows, refreshes and removes records of the store."""

import argparse
import base64
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from difflib import unified_diff
from random import random
from time import time
from typing import Any, Final

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.utils.project import inside_project

from scrapy_rep.commands import record_text
from scrapy_rep.commands.arguments import JSON, Subcommand, check_url, usage_error
from scrapy_rep.commands.output import (
    EXIT_NO,
    EXIT_OK,
    EXIT_UNKNOWN,
    coloured,
    section,
)
from scrapy_rep.commands.spider import CoroutineRunner, gather, robots_of
from scrapy_rep.fetch.fetcher import Fetcher
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.outcome import Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.settings import Options, unknown_settings
from scrapy_rep.stores import registry
from scrapy_rep.stores.base import BareStore, StoreError
from scrapy_rep.utils.text import counted, printable

_AT_A_TIME: Final = 50
"""Number of records that are read at a time: at most 40 MB at MAX_BODY_BYTES each."""
_MAX_DIFF: Final = 2_000
"""Maximum number of lines of texts whose changes are printed line by line."""


def _cache(args: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    """Run the action of ``args``; return its status. Only ``refresh`` creates the store's file."""
    options = runner.options
    name, arguments = (args[0] if args else ""), args[1:]
    if name not in ACTIONS:
        got = f" (got: {name!a})" if args else ""
        forms = ", ".join(f"{each} ORIGIN" if each in _OF_ORIGIN else each for each in ACTIONS)
        raise usage_error(f"cache requires an action, one of: {forms}{got}")
    if len(arguments) != (1 if name in _OF_ORIGIN else 0):
        takes = "one origin" if name in _OF_ORIGIN else "no arguments"
        raise usage_error(f"cache {name} takes {takes}")
    if name in _CHANGING and unknown_settings(runner.settings):
        raise usage_error(f"cache {name} takes no unknown settings: nothing was changed")
    origins = [_origin_of(text) for text in arguments]
    if not registry.is_persistent(options.store):
        raise usage_error(
            "REP_STORE is memory://, and nothing of that outlives a process"
            if inside_project()
            else "outside of a project, name a store: -s REP_STORE=sqlite:///robots.sqlite is that "
            "of crawls in this directory"
        )
    path = registry.path_of(options.store)
    if name != "refresh" and path is not None and not path.exists():
        print(f"nothing is stored yet: there is no file {path}", file=sys.stderr)
        return EXIT_NO if origins else EXIT_OK

    async def in_crawl(crawler: Crawler) -> int:
        store = registry.make_unguarded_store(options.store_config, deletes_damaged=False)
        actions = _Actions(crawler, options, store, opts.json)
        try:
            return await ACTIONS[name](actions, *origins)
        except StoreError as error:
            print(f"{actions.store_name}: {printable(str(error))}", file=sys.stderr)
            return EXIT_UNKNOWN
        finally:
            await store.close()

    return runner.run(in_crawl)


@dataclass
class _Actions:
    """The actions: each prints its result, and returns the exit status or raises StoreError."""

    _crawler: Crawler
    _options: Options
    _store: BareStore
    _as_json: bool

    @property
    def store_name(self) -> str:
        return registry.display_name(self._options.store)

    async def list_all(self) -> int:
        """Print a line for each record, also if it can't be read, and the number of origins."""
        count = 0
        async for key, record in self._records():
            count += 1
            values = {"outcome": None} if record is None else self._dict(record)
            self._print(_record_line(key, record, self._options), {"origin": key, **values})
        if not self._as_json:
            print(f"{self.store_name} holds {counted(count, 'origin')}")
        return EXIT_OK

    async def show(self, origin: Origin) -> int:
        """Print the record of ``origin`` and its last good text; EXIT_NO without a readable one."""
        found = await self._store.get(str(origin))
        record, holder = found.record, found.holder
        if record is None:
            return self._print_missing(f"readable record of {origin}")
        lines = record_text.details(record, self._options, time(), f"from {self.store_name}")
        if holder is not None:
            lines.append("a crawl is fetching it")
        text = section("robots.txt", lines)
        body = None if record.copy is None else record.copy.body
        if body is not None:
            title = "Text" if record.copy is record.last else "Text of the last good copy"
            text += section(title, [printable(line) for line in _lines(body)])
        self._print(
            "\n".join(text),
            {"origin": str(origin), **self._dict(record), **_body_as_json(body)},
        )
        return EXIT_OK

    async def refresh(self, origin: Origin) -> int:
        """Fetch robots.txt even if its record is valid, store the new one, and print the changes.

        The record is not stored if the fetch failed on the route, for example at a proxy. Return
        EXIT_UNKNOWN if ``origin`` is unreachable.
        """
        robots = robots_of(self._crawler)
        before = (await self._store.get(str(origin))).record
        page = Request(f"{origin}/")
        fetcher = Fetcher(self._crawler, self._options, robots.decider.verdict_on_hop)
        outcome = await fetcher.fetch(origin, page)
        jitter = random()  # noqa: S311 - not a secret
        record = self._options.policy.record_after(before, origin, outcome, jitter=jitter)
        if record.of_origin:
            await self._store.put(record)
        old, new = (b"" if r is None or r.copy is None else r.copy.body for r in (before, record))
        lines = [str(origin)]
        for when, each in (("before", before), ("after", record)):
            what = "not stored" if each is None else _describe_outcome(each, self._options)
            lines.append(f"  {when + ':':8}{what}")
        if before is not None and old != new:
            lines += _diff_of(old, new)
        elif old:
            lines.append("  the text is the same")
        values = {
            "origin": str(origin),
            "before": None if before is None else self._dict(before),
            "after": self._dict(record),
            "changed": old != new,
        }
        self._print("\n".join(lines), values)
        return EXIT_UNKNOWN if isinstance(outcome, Unreachable) else EXIT_OK

    async def drop(self, origin: Origin) -> int:
        """Remove the record of ``origin``; EXIT_NO if there is none."""
        if not await self._store.discard(str(origin)):
            return self._print_missing(f"record of {origin}")
        self._print(f"dropped: {origin}", {"origin": str(origin), "dropped": True})
        return EXIT_OK

    async def prune(self) -> int:
        """Remove the records that are too old, or more than the store may have."""
        count = await self._store.prune()
        self._print(f"records dropped: {count}", {"dropped": count})
        return EXIT_OK

    async def _records(self) -> AsyncIterator[tuple[str, Record | None]]:
        """Yield all keys in the store, each with its record; None if that can't be decoded."""
        keys: list[str] = []
        async for key in self._store.scan_keys():
            keys.append(key)
            if len(keys) == _AT_A_TIME:
                for each in await self._read(keys):
                    yield each
                keys.clear()
        for each in await self._read(keys):
            yield each

    async def _read(self, keys: list[str]) -> list[tuple[str, Record | None]]:
        found = await gather(map(self._store.get, keys))
        return [(key, each.record) for key, each in zip(keys, found, strict=True)]

    def _dict(self, record: Record) -> dict[str, Any]:
        return record_text.as_dict(record, self._options, time())

    def _print(self, text: str, values: dict[str, Any]) -> None:
        print(json.dumps(values) if self._as_json else text)

    def _print_missing(self, what: str) -> int:
        print(f"{self.store_name} has no {what}", file=sys.stderr)
        return EXIT_NO


ACTIONS: Final[dict[str, Callable[..., Awaitable[int]]]] = {
    "list": _Actions.list_all,
    "show": _Actions.show,
    "refresh": _Actions.refresh,
    "drop": _Actions.drop,
    "prune": _Actions.prune,
}
_OF_ORIGIN: Final = {"show", "refresh", "drop"}
_CHANGING: Final = {"refresh", "drop", "prune"}
CACHE: Final = Subcommand(
    "cache",
    f"{'|'.join(ACTIONS)} ...",
    "list, show ORIGIN, refresh ORIGIN, drop ORIGIN, prune: the contents of the store",
    (JSON,),
    _cache,
)


def _origin_of(text: str) -> Origin:
    """Return the origin of the URL ``text``. Raises UsageError."""
    check_url(text)
    return origin_of(text)


def _record_line(key: str, record: Record | None, options: Options) -> str:
    """Return a line of text for the list; a record that is None can't be decoded."""
    if record is None:
        word = coloured("can't tell", "unreadable ")
        return f"{word}  {printable(key)}"
    kind = record.last.kind.value
    summary = record_text.summary(record, options, time())
    return f"{coloured(kind, f'{kind:11}')}  {printable(key)}  {summary}"


def _describe_outcome(record: Record, options: Options) -> str:
    kind = record.last.kind.value
    return f"{coloured(kind, kind)}, {record_text.summary(record, options, time())}"


def _lines(body: bytes) -> list[str]:
    # The bytes are split before decoding: str.splitlines() would split at other characters, too.
    return [line.decode("utf-8", "backslashreplace") for line in body.splitlines()]


def _body_as_json(body: bytes | None) -> dict[str, str | None]:
    """Return the member ``body``, None if there is none; ``body_base64`` if it is not UTF-8."""
    if body is None:
        return {"body": None}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _diff_of(old: bytes, new: bytes) -> list[str]:
    """Return a heading and the lines that differ; above _MAX_DIFF, one line with their numbers."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _MAX_DIFF:
        return [f"  the text has changed, from {len(before)} to {counted(len(after), 'line')}"]
    changes = unified_diff(before, after, n=0, lineterm="")
    return ["  the text has changed:", *(f"  {printable(change)}" for change in list(changes)[2:])]
