"""REP_STORE: the URI of a store, with its options in the query, and the store for it."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from scrapy.exceptions import NotConfigured
from scrapy.utils.project import data_path

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.stores.base import Store
from scrapy_rep.stores.memory import MemoryStore
from scrapy_rep.stores.write_behind import WriteBehind
from scrapy_rep.utils.setting_readers import NotTakenError, Reader, closest, integer, number, one_of

_IN_MEMORY: Final = ":memory:"
_MAX_PREFIX: Final = 200
_is_database: Final = re.compile(r"/?[0-9]*").fullmatch


def _read_prefix(value: str) -> str:
    if not value.isprintable() or len(value) > _MAX_PREFIX:
        raise ValueError
    return value


_OPTIONS: Final[Mapping[str, tuple[Reader, Any]]] = {
    "prefix": (Reader(f"printable characters, at most {_MAX_PREFIX}", _read_prefix), "robots:"),
    "timeout": (number("seconds", low=0.05, high=3_600), 2.0),
    "max_age": (number("seconds", low=1, high=1e10), 60 * 86_400.0),
    "max_bytes": (integer("bytes", 1024**2), 4 * 1024**3),
    # One of redis-py's, for which a thread that reads and one that writes need a connection each.
    "max_connections": (integer("connections", 2), None),
}
"""The options in the query, with their readers, and defaults of ours."""
_REDIS: Final = ("prefix", "timeout", "max_age", "max_connections")


class _Scheme(NamedTuple):
    """A URI scheme of REP_STORE."""

    form: str
    is_valid: Callable[[str], bool]
    """Returns whether a URI without query is valid, or raises ValueError if it is not."""
    options: tuple[str, ...]
    """Names of _OPTIONS. For Redis, all others are those of redis-py."""


def make_write_behind(uri: str, memory_max_bytes: int) -> WriteBehind:
    """Return the store of REP_STORE for a crawl. It is opened when it is first used.

    Raises SettingsError if redis-py is required and isn't installed, or can't read the URI.
    """
    timeout = _options_in(uri)[0].get("timeout", 0.0)
    return WriteBehind(make_store(uri, memory_max_bytes), name=display_name(uri), timeout=timeout)


def make_store(uri: str, memory_max_bytes: int) -> Store:
    """Return the store of REP_STORE for a command. Raises SettingsError, as above."""
    options, others = _options_in(uri)
    path = path_of(uri)
    if path is not None:
        from scrapy_rep.stores.sqlite import SQLiteStore

        return SQLiteStore(path, **options)
    if not is_persistent(uri):
        return MemoryStore(max_bytes=memory_max_bytes)
    shown = without_secrets(uri)
    try:
        from scrapy_rep.stores.redis import RedisStore
    except ImportError:
        raise SettingsError(
            f"REP_STORE is {shown!r}: it takes redis-py, which isn't installed: "
            "pip install scrapy-rep[redis]"
        ) from None
    url = uri.partition("?")[0] + (f"?{urlencode(others)}" if others else "")
    try:
        return RedisStore(url, **options)
    except ValueError:
        raise SettingsError(f"REP_STORE is {shown!r}: redis-py can't read that URL") from None


def check_uri(uri: str) -> None:
    """Raise NotTakenError if ``uri`` is not valid, with the valid forms and what may be meant."""
    scheme_name = uri.partition(":")[0]
    scheme = _SCHEMES.get(scheme_name)
    if scheme is None:
        raise NotTakenError(TAKES)
    is_valid = False
    with suppress(ValueError):
        is_plain = uri.startswith(f"{scheme_name}://") and uri == uri.strip() and "\0" not in uri
        is_valid = is_plain and scheme.is_valid(uri.partition("?")[0])
    if not is_valid:
        meant = _meant_by(uri)
        hint = "" if meant is None else f"; did you mean {meant!r}?"
        raise NotTakenError(f"{scheme.form!r}{hint}")
    for name, value in _query_of(uri):
        if name in scheme.options:
            reader, _ = _OPTIONS[name]
            try:
                reader.read(value)
            except (ValueError, OverflowError):
                raise NotTakenError(f"a URI whose {name} is {reader.takes}") from None
            continue
        meant = closest(name, scheme.options, cutoff=0.7)
        if meant is not None or scheme.options is not _REDIS:  # redis-py checks its own options
            names = ", ".join(scheme.options) or "none"
            hint = "" if meant is None else f"; did you mean {meant!r}?"
            raise NotTakenError(f"a URI whose options are {names}, and not {name!r}{hint}")


def is_persistent(uri: str) -> bool:
    """Return whether the store of ``uri`` keeps its records after the end of the process."""
    return _scheme(uri) != "memory"


def path_of(uri: str) -> Path | None:
    """Return the absolute path of the file in ``sqlite:///PATH``; None for another scheme.

    A relative path is in the data directory (``.scrapy``).
    """
    if _scheme(uri) != "sqlite":
        return None
    path = uri.partition("?")[0].partition(":///")[2]
    try:
        return Path(data_path(path)).absolute()
    except (OSError, NotConfigured):  # there is no data directory, and it can't be created
        return Path(".scrapy", path).absolute()


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
    visible, question, query = rest.partition("?")
    if not question:
        return visible
    # Our own options are shown.
    shown = [
        f"{name}={value if name in _OPTIONS else '***'}"
        for name, _, value in (each.partition("=") for each in query.split("&"))
    ]
    return f"{visible}?{'&'.join(shown)}"


def _scheme(uri: str) -> str:
    return uri.partition("://")[0]


def _query_of(uri: str) -> list[tuple[str, str]]:
    return parse_qsl(uri.partition("?")[2], keep_blank_values=True)


def _options_in(uri: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return our options, with defaults, and those of redis-py."""
    names, others = _SCHEMES[_scheme(uri)].options, []
    values = {name: default for name in names if (default := _OPTIONS[name][1]) is not None}
    for name, value in _query_of(uri):
        if name in values:
            values[name] = _OPTIONS[name][0].read(value)
        else:
            others.append((name, value))
    return values, others


def _meant_by(uri: str) -> str | None:
    """Return the URI that is meant by a path of SQLAlchemy or of a shell; None for others."""
    path = uri.partition("?")[0].removeprefix("sqlite:").lstrip("/")
    if path == _IN_MEMORY:
        return "memory://"
    if path.startswith("~"):
        with suppress(RuntimeError):  # there is no such user
            return f"sqlite:///{Path(path).expanduser()}"
    return None


def _has_file(uri: str) -> bool:
    rest = uri.partition("://")[2]
    path = rest.lstrip("/")
    # In SQLAlchemy, ":memory:" is a database in memory; in a shell, "~" is the home directory.
    is_other = path == _IN_MEMORY or path.startswith("~")
    return rest.startswith("/") and not rest.endswith("/") and not is_other


def _has_host(uri: str) -> bool:
    # Reading ``port`` raises ValueError if it is not valid. redis-py checks the rest of the URI,
    # but not the path: for a path that is not a number it would use database 0.
    parts = urlsplit(uri)
    is_valid = parts.hostname is not None and parts.port != -1 and not parts.fragment
    return is_valid and bool(_is_database(parts.path))


_SCHEMES: Final = {
    "memory": _Scheme("memory://", lambda uri: uri == "memory://", ()),
    "sqlite": _Scheme("sqlite:///PATH", _has_file, ("timeout", "max_age", "max_bytes")),
    "redis": _Scheme("redis://HOST:PORT/NUMBER", _has_host, _REDIS),
    "rediss": _Scheme("rediss://HOST:PORT/NUMBER", _has_host, _REDIS),
    "unix": _Scheme("unix:///PATH", lambda uri: _has_file(uri) and "#" not in uri, _REDIS),
}
TAKES: Final = one_of(*(scheme.form for scheme in _SCHEMES.values())).takes
"""The forms of the valid values of REP_STORE, as error messages list them."""
