"""``scrapy robots cache``: lists, shows and removes records of the store."""

import argparse
import base64
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from scrapy_rep.commands.arguments import Subcommand, check_url, usage_error
from scrapy_rep.commands.crawl import CoroutineRunner
from scrapy_rep.commands.output import Exit, RecordView, coloured, section
from scrapy_rep.protocol.lexer import as_text
from scrapy_rep.protocol.origin import Origin
from scrapy_rep.protocol.record import Record, RecordError
from scrapy_rep.settings import Options
from scrapy_rep.stores.base import Store, StoreError
from scrapy_rep.stores.uri import display_name, is_persistent, make_store, path_of
from scrapy_rep.utils.text import counted, printable, without_credentials

_AT_A_TIME: Final = 50
"""Number of records that are read at a time: at most 40 MB at MAX_BODY_BYTES each."""


def _cache(args: list[str], opts: argparse.Namespace, runner: CoroutineRunner) -> int:
    options = runner.options
    name, arguments = (args[0] if args else ""), args[1:]
    if name not in _ACTIONS or len(arguments) != (name in _OF_SITE):
        got = " ".join(["cache", *map(without_credentials, args)])
        raise usage_error(f"cache requires an action, one of: {_FORMS} (got: {got!a})")
    origins = [check_url(text) for text in arguments]
    if not is_persistent(options.store):
        raise usage_error("name a store of crawls, as in -s REP_STORE=sqlite:///robots.sqlite")
    path = path_of(options.store)
    if path is not None and not path.exists():
        print(f"nothing is stored yet: there is no file {path}", file=sys.stderr)
        return Exit.NO if origins else Exit.OK
    store = make_store(options.store, options.memory_max_bytes)
    store_name = display_name(options.store)
    try:
        return _ACTIONS[name](_Actions(options, store, store_name, opts.json), *origins)
    except StoreError as error:
        print(f"{store_name}: {printable(str(error))}", file=sys.stderr)
        return Exit.UNKNOWN
    finally:
        store.close()


@dataclass
class _Actions:
    """The actions: each prints its result, and returns the exit status or raises StoreError."""

    _options: Options
    _store: Store
    _store_name: str
    _as_json: bool

    def list_all(self) -> int:
        count, keys = 0, self._store.keys()
        while some := list(islice(keys, _AT_A_TIME)):
            count += len(some)
            for key, record in zip(some, self._read(some), strict=True):
                view = None if record is None else RecordView(record, self._options)
                values = {"outcome": None} if view is None else view.as_dict()
                self._print(_line(key, view), {"origin": key, **values})
        if not self._as_json:
            print(f"{self._store_name} holds {counted(count, 'origin')}")
        return Exit.OK

    def show(self, origin: Origin) -> int:
        record = self._read([str(origin)])[0]
        if record is None:
            return self._print_missing(f"readable record of {origin}")
        view = RecordView(record, self._options)
        text = section("robots.txt", view.details(f"from {self._store_name}"))
        body = None if record.copy is None else record.copy.body
        if body is not None:
            title = "Text" if record.copy is record.last else "Text of the last good copy"
            text += section(title, [printable(as_text(line)) for line in body.splitlines()])
        values = {"origin": str(origin), **view.as_dict(), **_body_as_json(body)}
        self._print("\n".join(text), values)
        return Exit.OK

    def drop(self, origin: Origin) -> int:
        if not self._store.delete(str(origin)):
            return self._print_missing(f"record of {origin}")
        self._print(f"dropped: {origin}", {"origin": str(origin), "dropped": True})
        return Exit.OK

    def _read(self, keys: list[str]) -> list[Record | None]:
        found = self._store.read(keys).records
        return [_decode(key, *found[key]) if key in found else None for key in keys]

    def _print(self, text: str, values: dict[str, Any]) -> None:
        print(json.dumps(values) if self._as_json else text)

    def _print_missing(self, what: str) -> int:
        print(f"{self._store_name} has no {what}", file=sys.stderr)
        return Exit.NO


_ACTIONS: Final[dict[str, Callable[..., int]]] = {
    "list": _Actions.list_all,
    "show": _Actions.show,
    "drop": _Actions.drop,
}
_OF_SITE: Final = {"show", "drop"}
_FORMS: Final = "list, show URL, drop URL"
CACHE: Final = Subcommand(
    "cache",
    f"{'|'.join(_ACTIONS)} ...",
    f"{_FORMS}: the contents of the store",
    ("--json",),
    _cache,
)


def _decode(key: str, state: bytes, body: bytes) -> Record | None:
    try:
        return Record.decode(state, body, key)
    except RecordError:
        return None


def _line(key: str, view: RecordView | None) -> str:
    if view is None:
        word = coloured("can't tell", "unreadable ")
        return f"{word}  {printable(key)}"
    return f"{coloured(view.outcome, f'{view.outcome:11}')}  {printable(key)}  {view.summary()}"


def _body_as_json(body: bytes | None) -> dict[str, str | None]:
    if body is None:
        return {"body": None}
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}
