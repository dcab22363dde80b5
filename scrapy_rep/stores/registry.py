"""Creates the store that REP_STORE names, by a table of URI schemes.

To add a kind of store, add a row to the table, and a module to this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_rep.stores.base import BareStore, Store


class StoreConfig(NamedTuple):
    """The options that a store is created from; the fields have the names of the options."""

    store: str
    """The URI."""
    store_prefix: str
    store_max_age: float
    """Seconds."""
    store_max_bytes: int
    store_timeout: float
    """Seconds."""
    max_size: int
    """Bytes of a robots.txt."""
    memory_max_bytes: int


@dataclass(frozen=True)
class _Scheme:
    """One row of the table: a kind of store."""

    form: str
    """The form of its URIs, for messages."""
    is_right: Callable[[str], bool]
    """Returns whether a URI is valid; may raise ValueError."""
    make: Callable[[StoreConfig, bool], BareStore]
    """Creates a store; the flag tells whether a file of another program is renamed."""


def make_store(config: StoreConfig) -> Store:
    """Return the store that REP_STORE names, with a guard. It is opened when it is used.

    Raises SettingsError if a package that it needs isn't installed, or the URI is not valid.
    """
    if not outlives_the_process(config.store):
        return _memory(config, True)
    return GuardedStore(
        make_bare_store(config),
        _memory(config, True),
        name=shown(config.store),
        timeout=config.store_timeout,
    )


def make_bare_store(config: StoreConfig, *, set_aside: bool = True) -> BareStore:
    """Return the store that REP_STORE names, without a guard.

    ``set_aside`` tells whether a file of another program is renamed, so that a new one can take its
    place. Raises SettingsError as make_store does.
    """
    return _SCHEMES[_scheme(config.store)].make(config, set_aside)


def is_store(uri: str) -> bool:
    """Return whether ``uri`` is a value of REP_STORE. May raise ValueError in place of False."""
    scheme = _SCHEMES.get(_scheme(uri))
    readable = "://" in uri and uri == uri.strip() and "\0" not in uri
    return readable and scheme is not None and scheme.is_right(uri)


def outlives_the_process(uri: str) -> bool:
    """Return whether the next crawl finds the records of the store."""
    return _scheme(uri) != "memory"


def path_of(uri: str) -> Path | None:
    """Return the file of ``sqlite:///PATH``; None for other URIs.

    Relative paths are relative to the data directory of the project.
    """
    return _file_of(uri) if _scheme(uri) == "sqlite" else None


def shown(uri: str) -> str:
    """Return the value of REP_STORE without credentials, for logs and messages."""
    # Text before an @ and in the query may be a password, also in a URI that isn't valid.
    before, at, rest = uri.rpartition("@")
    if at:
        scheme, slashes, _ = before.partition("://")
        rest = f"{scheme}://***@{rest}" if slashes else f"***@{rest}"
    visible, question, _ = rest.partition("?")
    return f"{visible}?***" if question else visible


def _scheme(uri: str) -> str:
    return uri.partition("://")[0]


def _file_of(uri: str) -> Path:
    path = uri.partition(":///")[2]
    try:
        return Path(data_path(path)).absolute()
    except (OSError, NotConfigured):  # there is no data directory, and it can't be created
        return Path(".scrapy", path).absolute()


def _names_a_file(uri: str) -> bool:
    rest = uri.partition("://")[2]
    return rest.startswith("/") and rest.strip("/") != "" and not rest.endswith("/")


def _names_a_host(uri: str) -> bool:
    # redis-py checks the rest; .port raises ValueError.
    parts = urlsplit(uri)
    return parts.hostname is not None and parts.port != -1


def _names_hosts(uri: str) -> bool:
    try:
        from scrapy_rep.stores.redis_client import names_hosts
    except ImportError:
        return True  # _redis raises the error
    return names_hosts(uri)


def _memory(config: StoreConfig, _: bool) -> MemoryStore:
    return MemoryStore(
        max_bytes=config.memory_max_bytes,
        max_size=config.max_size,
    )


def _sqlite(config: StoreConfig, set_aside: bool) -> BareStore:
    from scrapy_rep.stores.sqlite import SQLiteStore

    return SQLiteStore(
        _file_of(config.store),
        max_size=config.max_size,
        max_age=config.store_max_age,
        max_bytes=config.store_max_bytes,
        timeout=config.store_timeout,
        clock=time,
        set_aside=set_aside,
    )


def _redis(config: StoreConfig, _: bool) -> BareStore:
    try:
        from scrapy_rep.stores.redis import RedisStore
    except ImportError:
        raise SettingsError(
            f"REP_STORE is {shown(config.store)!r}: it takes redis-py, which isn't "
            "installed: pip install scrapy-rep[redis]"
        ) from None
    try:
        return RedisStore(
            config.store,
            prefix=config.store_prefix,
            max_size=config.max_size,
            max_age=config.store_max_age,
            timeout=config.store_timeout,
        )
    except ValueError:
        # The message of the error may contain credentials.
        raise SettingsError(
            f"REP_STORE is {shown(config.store)!r}: redis-py can't read that URL"
        ) from None


_SCHEMES: Final = {
    "memory": _Scheme("memory://", lambda uri: uri == "memory://", _memory),
    "sqlite": _Scheme("sqlite:///PATH", _names_a_file, _sqlite),
    "redis": _Scheme("redis://HOST", _names_a_host, _redis),
    "rediss": _Scheme("rediss://HOST", _names_a_host, _redis),
    "redis+cluster": _Scheme("redis+cluster://HOST,HOST", _names_hosts, _redis),
    "rediss+cluster": _Scheme("rediss+cluster://HOST,HOST", _names_hosts, _redis),
    "redis+sentinel": _Scheme("redis+sentinel://HOST,HOST/SERVICE", _names_hosts, _redis),
    "rediss+sentinel": _Scheme("rediss+sentinel://HOST,HOST/SERVICE", _names_hosts, _redis),
}
*_FORMS, _LAST_FORM = (repr(scheme.form) for scheme in _SCHEMES.values())
TAKES: Final = f"{', '.join(_FORMS)} or {_LAST_FORM}"
"""The valid forms of REP_STORE, in words."""
