"""The URI schemes of REP_STORE, and the kind of store for each scheme.

A new kind of store needs a row in ``_SCHEMES``, and a module in this package.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.stores.base import BareStore, Store
from scrapy_rep.stores.guarded import GuardedStore
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.utils.setting_readers import NotTakenError, closest

_IN_MEMORY: Final = ":memory:"
_is_database: Final = re.compile(r"/?[0-9]*").fullmatch
_is_host_and_port: Final = re.compile(r"[\w.-]+:[0-9]+(?:/[0-9]*)?").fullmatch
_is_file: Final = re.compile(r"(?:.*/)?[\w -]+\.\w+").fullmatch


class StoreConfig(NamedTuple):
    """The options of a store. Their names are those of fields of ``Options``."""

    store: str
    store_prefix: str
    store_max_age: float
    """Seconds."""
    store_max_bytes: int
    store_timeout: float
    """Seconds."""
    memory_max_bytes: int


@dataclass(frozen=True)
class _Scheme:
    """One URI scheme of REP_STORE."""

    form: str
    """The form of a valid URI, as messages show it."""
    is_valid: Callable[[str], bool]
    """Returns whether a URI of this scheme is valid, or raises ValueError if it is not."""
    make: Callable[[StoreConfig, bool], BareStore]
    """Returns the store, or raises SettingsError. The bool: whether a damaged file is deleted."""
    remark: str = ""
    """What messages say after the form."""


def make_store(config: StoreConfig) -> Store:
    """Return the store of REP_STORE for a crawl: its errors are logged and not raised.

    Files and connections are opened when the store is first used. Raises SettingsError if redis-py
    is required and isn't installed, or can't read the URI.
    """
    if not is_persistent(config.store):
        return _memory(config, True)
    return GuardedStore(
        make_unguarded_store(config),
        _memory(config, True),
        name=display_name(config.store),
        timeout=config.store_timeout,
    )


def make_unguarded_store(config: StoreConfig, *, deletes_damaged: bool = True) -> BareStore:
    """Return the store of REP_STORE for a command: its errors are raised.

    If ``deletes_damaged``, a damaged file is replaced by a new one. Raises SettingsError as
    ``make_store`` does.
    """
    return _SCHEMES[_scheme(config.store)].make(config, deletes_damaged)


def is_valid_uri(uri: str) -> bool:
    """Return whether ``uri`` is a valid REP_STORE. Of Redis, redis-py decides if installed."""
    scheme = _SCHEMES.get(_scheme(uri))
    readable = "://" in uri and uri == uri.strip() and "\0" not in uri
    with suppress(ValueError):
        return readable and scheme is not None and scheme.is_valid(uri)
    return False


def check_uri(uri: str) -> None:
    """Raise NotTakenError if ``uri`` is not valid, with the valid forms and what may be meant."""
    if is_valid_uri(uri):
        return
    scheme, colon, rest = uri.partition(":")
    name = closest(scheme, list(_SCHEMES), cutoff=0.75 if colon else 1.0)
    takes, meant = TAKES, ""
    if name is not None:
        takes = f"{_SCHEMES[name].form!r}{_SCHEMES[name].remark}"
        meant = f"{name}://{rest.lstrip('/')}"
        if name == "sqlite":
            meant = _meant_file(rest)
    elif _is_host_and_port(uri):
        meant = f"redis://{uri}"
    elif not colon and _is_file(uri):
        meant = f"sqlite:///{uri}"
    hint = f"; did you mean {without_secrets(meant)!r}?" if is_valid_uri(meant) else ""
    raise NotTakenError(f"{takes}{hint}")


def is_persistent(uri: str) -> bool:
    """Return whether the store of ``uri`` keeps its records after the end of the process."""
    return _scheme(uri) != "memory"


def path_of(uri: str) -> Path | None:
    """Return the absolute path of the file in ``sqlite:///PATH``; None for another scheme."""
    return _file_of(uri) if _scheme(uri) == "sqlite" else None


def display_name(uri: str) -> str:
    """Return the path of the store's file, or ``uri`` without credentials, for messages."""
    path = path_of(uri)
    return without_secrets(uri) if path is None else str(path)


def without_secrets(uri: str) -> str:
    """Return a value of REP_STORE without credentials, for messages."""
    # Everything before an @ and in the query may be a password, even in a malformed URI.
    before, at, rest = uri.rpartition("@")
    if at:
        scheme, slashes, _ = before.partition("://")
        rest = f"{scheme}://***@{rest}" if slashes else f"***@{rest}"
    visible, question, _ = rest.partition("?")
    return f"{visible}?***" if question else visible


def _scheme(uri: str) -> str:
    return uri.partition("://")[0]


def _file_of(uri: str) -> Path:
    """Return the path in ``uri``; a relative one is in the data directory (``.scrapy``)."""
    path = uri.partition(":///")[2]
    try:
        return Path(data_path(path)).absolute()
    except (OSError, NotConfigured):  # there is no data directory, and it can't be created
        return Path(".scrapy", path).absolute()


def _has_file(uri: str) -> bool:
    rest = uri.partition("://")[2]
    path = rest.lstrip("/")
    # In SQLAlchemy, ":memory:" is a database in memory; in a shell, "~" is the home directory.
    if path == _IN_MEMORY or path.startswith("~"):
        return False
    return rest.startswith("/") and path != "" and not path.endswith("/")


def _meant_file(rest: str) -> str:
    """Return the URI that may be meant by ``sqlite:`` with ``rest``, which is not valid."""
    path = rest.lstrip("/")
    if path == _IN_MEMORY:
        return "memory://"
    if path.startswith("~"):
        with suppress(RuntimeError):  # there is no such user
            return f"sqlite:///{Path(path).expanduser()}"
    # A single slash begins an absolute path, two those of another kind of URI.
    slash = "/" if rest.startswith("/") and not rest.startswith("//") else ""
    return f"sqlite:///{slash}{path}"


def _has_host(uri: str) -> bool:
    # Reading ``port`` raises ValueError if it is not valid. redis-py checks the rest of the URI,
    # but not the path: for a path that is not a number it would use database 0.
    parts = urlsplit(uri)
    return parts.hostname is not None and parts.port != -1 and bool(_is_database(parts.path))


def _has_valid_hosts(uri: str) -> bool:
    """Return True, also if redis-py is missing, which make_store reports; or raise ValueError."""
    try:
        from scrapy_rep.stores.redis_client import parts_of
    except ImportError:
        return True
    return bool(parts_of(uri))


def _memory(config: StoreConfig, _: bool) -> MemoryStore:
    return MemoryStore(max_bytes=config.memory_max_bytes, max_size=MAX_BODY_BYTES)


def _sqlite(config: StoreConfig, deletes_damaged: bool) -> BareStore:
    from scrapy_rep.stores.sqlite import SQLiteStore

    return SQLiteStore(
        _file_of(config.store),
        max_size=MAX_BODY_BYTES,
        max_age=config.store_max_age,
        max_bytes=config.store_max_bytes,
        timeout=config.store_timeout,
        clock=time,
        deletes_damaged=deletes_damaged,
    )


def _redis(config: StoreConfig, _: bool) -> BareStore:
    """Return the store. Raises SettingsError without redis-py, or if that can't read the URI."""
    try:
        from scrapy_rep.stores.redis import RedisStore
    except ImportError:
        raise SettingsError(
            f"REP_STORE is {without_secrets(config.store)!r}: it takes redis-py, which isn't "
            "installed: pip install scrapy-rep[redis]"
        ) from None
    try:
        return RedisStore(
            config.store,
            prefix=config.store_prefix,
            max_size=MAX_BODY_BYTES,
            max_age=config.store_max_age,
            timeout=config.store_timeout,
        )
    except ValueError:
        # The message of redis-py's error is not shown, as it may contain credentials.
        raise SettingsError(
            f"REP_STORE is {without_secrets(config.store)!r}: redis-py can't read that URL"
        ) from None


_NUMBER: Final = " or '{}://HOST:PORT/NUMBER', with the number of a database"
_SCHEMES: Final = {
    "memory": _Scheme("memory://", lambda uri: uri == "memory://", _memory),
    "sqlite": _Scheme("sqlite:///PATH", _has_file, _sqlite),
    "redis": _Scheme("redis://HOST", _has_host, _redis, _NUMBER.format("redis")),
    "rediss": _Scheme("rediss://HOST", _has_host, _redis, _NUMBER.format("rediss")),
    "redis+cluster": _Scheme("redis+cluster://HOST,HOST", _has_valid_hosts, _redis),
    "rediss+cluster": _Scheme("rediss+cluster://HOST,HOST", _has_valid_hosts, _redis),
    "redis+sentinel": _Scheme("redis+sentinel://HOST,HOST/SERVICE", _has_valid_hosts, _redis),
    "rediss+sentinel": _Scheme("rediss+sentinel://HOST,HOST/SERVICE", _has_valid_hosts, _redis),
}
*_FORMS, _LAST_FORM = (repr(scheme.form) for scheme in _SCHEMES.values())
TAKES: Final = f"{', '.join(_FORMS)} or {_LAST_FORM}"
"""The forms of the valid values of REP_STORE, as error messages list them."""
