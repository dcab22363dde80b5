"""The settings of scrapy-rep. They are read and checked when a crawl starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from os import fspath
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

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


def _setting(
    name: str, default: Any, reader: Reader, shown: Callable[[Any], Any] = lambda value: value
) -> Any:
    return field(default=default, metadata={"name": name, "reader": reader, "shown": shown})


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
    store: str = _setting(
        "REP_STORE",
        "sqlite:///robots.sqlite",
        _store,
        lambda uri: without_secrets(uri) if isinstance(uri, str) else uri,
    )
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
                shown = option.metadata["shown"](value)
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
        values = ((option, getattr(self, option.name)) for option in fields(self))
        return {
            option.metadata["name"]: option.metadata["shown"](value)
            for option, value in values
            if value != option.default
        }


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
