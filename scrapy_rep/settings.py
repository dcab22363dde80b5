"""The settings of scrapy-rep, read and checked when a crawl starts; and those of Scrapy it uses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from os import fspath
from typing import Any, Final

import scrapy
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.overrides import Override, overrides_reader, parse_tokens
from scrapy_rep.protocol import limits
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.usage import PURPOSES
from scrapy_rep.stores.uri import TAKES, check_uri, without_secrets
from scrapy_rep.utils.per_crawl import get_or_add_part
from scrapy_rep.utils.setting_readers import (
    NotTakenError,
    Reader,
    boolean,
    closest,
    integer,
    number,
    one_of,
    several_of,
)


@partial(Reader, "a product token or a User-Agent, or a list of them, the most specific first")
def _tokens(value: Any) -> tuple[str, ...] | None:
    if value == "":
        return None
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json.loads(value)
    return parse_tokens(value)


@partial(Reader, TAKES)
def _store(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    check_uri(value)
    return value


def _path(*endings: str) -> Reader:
    def read(value: Any) -> str | None:
        if value is None or value == "":
            return None
        place = str(fspath(value))
        if "\0" in place or "://" in place or not place.endswith(endings):
            raise ValueError
        return place

    return Reader(f"a path that ends in {' or '.join(endings)}", read)


@partial(Reader, "'drop', 'mark' or False")
def _meta_tags(value: Any) -> str | bool:
    if value in {"drop", "mark"}:
        return str(value)
    if boolean.read(value):
        raise ValueError
    return False


def _setting(name: str, default: Any, reader: Reader) -> Any:
    return field(default=default, metadata={"name": name, "reader": reader})


def _shown(name: str, value: Any) -> Any:
    """Return the value of the setting ``name`` for messages, without credentials."""
    return without_secrets(value) if name == "REP_STORE" and isinstance(value, str) else value


INTERACTIVE: Final = "_REP_INTERACTIVE"
"""A private setting of Scrapy's commands whose user waits for the result: requests to unreachable
origins are not deferred, and dropped requests are written to standard error."""
_RANGES: Final = (("cache_ttl_min", "cache_ttl_max"), ("retry_delay", "retry_delay_max"))
"""The options of which the first must not be above the second."""
_from_0: Final = number("seconds", low=0)
_above_0: Final = number("seconds", low=0, above=True)


_GONE: Final = {
    "REP_CRAWL_DELAY_MIN": "DOWNLOAD_DELAY is a delay for all sites",
    "REP_INTERACTIVE": "scrapy shell, fetch, view, parse and check need no setting",
    "REP_MAX_SIZE": "the first 500 KiB of each robots.txt are read",
    "REP_SOFT_404": "a server error whose page says 'not found' counts as a 404",
    "REP_STORE_MAX_AGE": "REP_STORE takes it, as in sqlite:///robots.sqlite?max_age=SECONDS",
    "REP_STORE_MAX_BYTES": "REP_STORE takes it, as in sqlite:///robots.sqlite?max_bytes=BYTES",
    "REP_STORE_PREFIX": "REP_STORE takes it, as in redis://HOST?prefix=PREFIX",
    "REP_STORE_TIMEOUT": "REP_STORE takes it, as in sqlite:///robots.sqlite?timeout=SECONDS",
    "REP_SUBRESOURCES_UNKNOWN": "a browser's requests are aborted until robots.txt is known",
    "REP_UNREACHABLE_ACTION": "REP_DEFER_TIMEOUT = 0 drops requests at once",
    "REP_USAGE_SOURCES": "all usage preferences are read that the docs list",
    "REP_USAGE_UNKNOWN": 'pages about which a site says nothing have "unknown" in '
    'meta["robotstxt"]["usage"]["results"]',
}
"""Settings that existed before, and what takes their place."""


@dataclass(frozen=True)
class Options:
    """The values of all settings of scrapy-rep, which are valid."""

    tokens: tuple[str, ...] | None = _setting("ROBOTSTXT_USER_AGENT", None, _tokens)
    store: str = _setting("REP_STORE", "sqlite:///robots.sqlite", _store)
    memory_max_bytes: int = _setting("REP_MEMORY_MAX_BYTES", 64 * 1024**2, integer("bytes", 1))
    cache_ttl: float = _setting("REP_CACHE_TTL", limits.CACHE_TTL, _from_0)
    cache_ttl_min: float = _setting("REP_CACHE_TTL_MIN", limits.CACHE_TTL_MIN, _from_0)
    cache_ttl_max: float = _setting("REP_CACHE_TTL_MAX", limits.CACHE_TTL_MAX, _from_0)
    timeout: float = _setting("REP_TIMEOUT", 30.0, _above_0)
    unreachable_stale_after: float = _setting(
        "REP_UNREACHABLE_STALE_AFTER", limits.UNREACHABLE_STALE_AFTER, _from_0
    )
    unreachable_allow_after: float = _setting(
        "REP_UNREACHABLE_ALLOW_AFTER", limits.UNREACHABLE_ALLOW_AFTER, _from_0
    )
    defer_timeout: float = _setting("REP_DEFER_TIMEOUT", 300.0, _from_0)
    retry_delay: float = _setting("REP_RETRY_DELAY", limits.RETRY_DELAY, _above_0)
    retry_delay_max: float = _setting("REP_RETRY_DELAY_MAX", limits.RETRY_DELAY_MAX, _above_0)
    concurrent_fetches: int | None = _setting("REP_CONCURRENT_FETCHES", None, integer("fetches", 1))
    crawl_delay_max: float = _setting("REP_CRAWL_DELAY_MAX", 300.0, _from_0)
    back_off_max: float = _setting("REP_BACK_OFF_MAX", 300.0, _from_0)
    overrides: tuple[Override, ...] = _setting("REP_OVERRIDES", (), overrides_reader)
    meta_tags: str | bool = _setting("REP_META_TAGS", "mark", _meta_tags)
    report: str | None = _setting("REP_REPORT", None, _path(".html", ".json"))
    evidence: str | None = _setting("REP_EVIDENCE", None, _path(".jsonl", ".jsonl.gz"))
    purposes: tuple[str, ...] = _setting("REP_PURPOSES", (), several_of(PURPOSES))
    usage_action: str = _setting(
        "REP_USAGE_ACTION", "record", one_of("record", "drop-items", "drop")
    )
    dry_run: bool = _setting("REP_DRY_RUN", False, boolean)

    @classmethod
    def of(cls, crawler: Crawler) -> Options:
        return get_or_add_part(crawler, cls, lambda: cls.from_settings(crawler.settings))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Options:
        """Return the options in ``settings``. Raises SettingsError for a value that is not valid.

        If a minimum is above a maximum, a default gives way to the value that is set.
        """
        for name, instead in _GONE.items():
            if settings.get(name) is not None:
                raise SettingsError(f"{name} is not a setting any more: {instead}")
        values: dict[str, Any] = {}
        for option in fields(cls):
            name, reader = option.metadata["name"], option.metadata["reader"]
            value = settings.get(name)
            if value is None:
                continue
            try:
                values[option.name] = reader.read(value)
            except SettingsError:
                raise
            except (ValueError, TypeError, OverflowError, RecursionError) as error:
                shown = _shown(name, value)
                takes = error if isinstance(error, NotTakenError) else reader.takes
                raise SettingsError(f"{name} is {shown!r}: it must be {takes}") from None
        for low, high in _RANGES:
            least, most = (values.get(each, getattr(cls, each)) for each in (low, high))
            if least <= most:
                continue
            if low in values and high in values:
                names = {each.name: each.metadata["name"] for each in fields(cls)}
                raise SettingsError(
                    f"{names[low]} is {least!r}: "
                    f"it must be at most {names[high]}, which is {most!r}"
                )
            values[low] = values[high] = values.get(low, most)
        return cls(**values)

    @cached_property
    def policy(self) -> Policy:
        return Policy(**{each.name: getattr(self, each.name) for each in fields(Policy)})

    def non_default(self) -> dict[str, Any]:
        """Return the values that differ from their defaults, by name, without credentials."""
        changed = [each for each in fields(self) if getattr(self, each.name) != each.default]
        values = {each.metadata["name"]: getattr(self, each.name) for each in changed}
        return {name: _shown(name, value) for name, value in values.items()}


def unknown_settings(settings: BaseSettings) -> list[str]:
    """Return a message for each unknown setting whose name begins with REP_ or ROBOTSTXT_."""
    known = {"ROBOTSTXT_OBEY", "ROBOTSTXT_PARSER", *(f.metadata["name"] for f in fields(Options))}
    messages = []
    for name in sorted(set(settings) - known):
        if name.strip().upper().startswith(("REP_", "ROBOTSTXT_")):
            # A high cutoff is needed, because the common prefix makes all names similar.
            meant = closest(name, sorted(known), cutoff=0.8)
            hint = "" if meant is None else f"; did you mean {meant}?"
            messages.append(f"{name} is not a setting of this version of scrapy-rep{hint}")
    return messages


# Scrapy's settings of downloads: the handler of a scheme, concurrency and time limits.

MAX_TRANSFER: Final = 16_777_216
"""``download_maxsize`` (16 MiB) for handlers that can't be stopped during a download: a file above
500 KiB is cut, but one above ``download_maxsize`` is an error."""
_HANDLERS: Final = "scrapy.core.downloader.handlers."
_STOPPABLE: Final = {_HANDLERS + name for name in ("http11", "_httpx", "_base_streaming")}
if scrapy.version_info >= (2, 18):
    _STOPPABLE.add(_HANDLERS + "http2")
_CONCURRENT_REQUESTS: Final = 16


def can_be_stopped(settings: BaseSettings, scheme: str) -> bool:
    """Return whether the download handler of ``scheme`` stops a download on StopDownload."""
    try:
        handler = load_object(settings.getwithbase("DOWNLOAD_HANDLERS")[scheme])
    except Exception:  # noqa: BLE001 - the import of its module may raise any error
        return False
    return any(base.__module__ in _STOPPABLE for base in getattr(handler, "__mro__", ()))


def concurrent_requests(settings: BaseSettings) -> int:
    """Return CONCURRENT_REQUESTS; its default, 16, if it sets no limit (0, since Scrapy 2.19)."""
    limit = settings.getint("CONCURRENT_REQUESTS")
    return limit if limit > 0 else _CONCURRENT_REQUESTS


def retry_times(settings: BaseSettings) -> int:
    """Return how often Scrapy tries a page again: RETRY_TIMES, or 0 without RETRY_ENABLED."""
    return settings.getint("RETRY_TIMES") if settings.getbool("RETRY_ENABLED") else 0


def default_download_timeout(crawler: Crawler) -> float:
    """Return the spider's ``download_timeout``, else DOWNLOAD_TIMEOUT, in seconds; 0: no limit."""
    of_crawl = crawler.settings.getfloat("DOWNLOAD_TIMEOUT")
    limit = getattr(crawler.spider, "download_timeout", of_crawl)
    # An invalid value counts as no limit here: Scrapy's download handlers raise an error for it.
    return float(limit) if isinstance(limit, int | float) and limit > 0 else 0.0
