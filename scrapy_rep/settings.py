"""The settings of scrapy-rep. They are read and checked when a crawl starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.overrides import Override, overrides_of
from scrapy_rep.protocol import limits
from scrapy_rep.protocol.policy import Policy
from scrapy_rep.protocol.product_tokens import tokens_of_setting
from scrapy_rep.protocol.usage.statement import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    PURPOSES,
    SOURCES,
    TAGS,
)
from scrapy_rep.stores import registry
from scrapy_rep.utils.per_crawl import get_or_add_part
from scrapy_rep.utils.readers import (
    boolean,
    describe_list_of,
    integer,
    number,
    one_of,
    path,
    several_of,
)

_MAX_SIZE: Final = 2**31 - 1
"""Maximum of REP_MAX_SIZE: the largest limit that zlib accepts on every machine."""
_MAX_PREFIX: Final = 200
"""Maximum number of characters of REP_STORE_PREFIX."""


def _parse_tokens(value: Any) -> tuple[str, ...] | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise TypeError
    tokens = tokens_of_setting(value)
    if not tokens:
        raise ValueError
    return tokens


def _parse_store(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not registry.is_store(value):
        raise ValueError
    return value


def _store_without_secrets(value: Any) -> Any:
    return registry.without_secrets(value) if isinstance(value, str) else value


def _parse_prefix(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    if not value.isprintable() or len(value) > _MAX_PREFIX:
        raise ValueError
    return value


def _parse_report(value: Any) -> str | None:
    place = path(value)
    if place is not None and not place.endswith((".html", ".json")):
        raise ValueError
    return place


def _parse_meta_tags(value: Any) -> str | bool:
    if value in {"drop", "mark"}:
        return str(value)
    if boolean(value):
        raise ValueError
    return False


_ENTRIES: Final = "a list of dicts, each with a host, a policy and a reason, or the same as JSON"


def _parse_overrides(value: Any) -> tuple[Override, ...]:
    try:
        return overrides_of(value)
    except TypeError as error:
        raise SettingsError(
            f"REP_OVERRIDES is {value!r}: it must be {'; '.join([_ENTRIES, *error.args])}"
        ) from None
    except ValueError as error:
        raise SettingsError(f"REP_OVERRIDES: {error}") from None


def _setting(
    name: str,
    default: Any,
    parse: Callable[[Any], Any],
    takes: str,
    shown: Callable[[Any], Any] = lambda value: value,
) -> Any:
    return field(
        default=default, metadata={"name": name, "parse": parse, "takes": takes, "shown": shown}
    )


_SECONDS: Final = "a number of seconds, 0 or more"
_SECONDS_ABOVE_0: Final = "a number of seconds above 0"
_RANGES: Final = (("cache_ttl_min", "cache_ttl_max"), ("retry_delay", "retry_delay_max"))
"""The options of which the first must not be above the second."""
_not_negative: Final = number(low=0)
_positive: Final = number(low=0, above=True)


@dataclass(frozen=True)
class Options:
    """The values of all settings of scrapy-rep, which are valid.

    The ``metadata`` of a field contains the name of the setting, a function that checks and
    converts its value, a description of valid values, and a function that removes credentials.
    """

    tokens: tuple[str, ...] | None = _setting(
        "ROBOTSTXT_USER_AGENT",
        None,
        _parse_tokens,
        "a product token or a User-Agent, or a list of them, the most specific first",
    )
    store: str = _setting(
        "REP_STORE", "sqlite:///robots.sqlite", _parse_store, registry.TAKES, _store_without_secrets
    )
    store_prefix: str = _setting(
        "REP_STORE_PREFIX",
        "robots:",
        _parse_prefix,
        f"a string of printable characters, at most {_MAX_PREFIX}",
    )
    store_max_age: float = _setting(
        "REP_STORE_MAX_AGE", 60 * 86_400.0, number(low=1), "a number of seconds, 1 or more"
    )
    store_max_bytes: int = _setting(
        "REP_STORE_MAX_BYTES",
        4 * 1024**3,
        integer(1024**2),
        f"a whole number of bytes, {1024**2} or more",
    )
    store_timeout: float = _setting(
        "REP_STORE_TIMEOUT", 2.0, number(low=0.05), "a number of seconds, 0.05 or more"
    )
    memory_max_bytes: int = _setting(
        "REP_MEMORY_MAX_BYTES", 64 * 1024 * 1024, integer(1), "a whole number of bytes, 1 or more"
    )
    cache_ttl: float = _setting("REP_CACHE_TTL", limits.CACHE_TTL, _not_negative, _SECONDS)
    cache_ttl_min: float = _setting(
        "REP_CACHE_TTL_MIN", limits.CACHE_TTL_MIN, _not_negative, _SECONDS
    )
    cache_ttl_max: float = _setting(
        "REP_CACHE_TTL_MAX", limits.CACHE_TTL_MAX, _not_negative, _SECONDS
    )
    timeout: float = _setting("REP_TIMEOUT", 30.0, _positive, _SECONDS_ABOVE_0)
    max_redirects: int = _setting(
        "REP_MAX_REDIRECTS",
        limits.MAX_REDIRECTS,
        integer(0, 20),
        "a whole number of redirects from 0 to 20",
    )
    max_size: int = _setting(
        "REP_MAX_SIZE",
        limits.MAX_BODY_BYTES,
        integer(1, _MAX_SIZE),
        f"a whole number of bytes from 1 to {_MAX_SIZE}",
    )
    unreachable_stale_after: float = _setting(
        "REP_UNREACHABLE_STALE_AFTER", limits.UNREACHABLE_STALE_AFTER, _not_negative, _SECONDS
    )
    unreachable_allow_after: float = _setting(
        "REP_UNREACHABLE_ALLOW_AFTER", limits.UNREACHABLE_ALLOW_AFTER, _not_negative, _SECONDS
    )
    unreachable_action: str = _setting(
        "REP_UNREACHABLE_ACTION", "defer", one_of("defer", "drop"), "'defer' or 'drop'"
    )
    defer_timeout: float = _setting("REP_DEFER_TIMEOUT", 300.0, _not_negative, _SECONDS)
    retry_delay: float = _setting(
        "REP_RETRY_DELAY", limits.RETRY_DELAY, _positive, _SECONDS_ABOVE_0
    )
    retry_delay_max: float = _setting(
        "REP_RETRY_DELAY_MAX", limits.RETRY_DELAY_MAX, _positive, _SECONDS_ABOVE_0
    )
    soft_404: bool = _setting("REP_SOFT_404", True, boolean, "True or False")
    concurrent_fetches: int = _setting(
        "REP_CONCURRENT_FETCHES", 16, integer(1), "a whole number of fetches, 1 or more"
    )
    crawl_delay_min: float = _setting("REP_CRAWL_DELAY_MIN", 0.0, _not_negative, _SECONDS)
    crawl_delay_max: float = _setting("REP_CRAWL_DELAY_MAX", 300.0, _not_negative, _SECONDS)
    back_off: bool = _setting("REP_BACK_OFF", True, boolean, "True or False")
    back_off_max: float = _setting("REP_BACK_OFF_MAX", 300.0, _positive, _SECONDS_ABOVE_0)
    overrides: tuple[Override, ...] = _setting("REP_OVERRIDES", (), _parse_overrides, _ENTRIES)
    meta_tags: str | bool = _setting(
        "REP_META_TAGS", "mark", _parse_meta_tags, "'drop', 'mark' or False"
    )
    report: str | None = _setting(
        "REP_REPORT", None, _parse_report, "a path that ends in .html or .json"
    )
    evidence: str | None = _setting(
        "REP_EVIDENCE", None, path, "the path of a directory, or one that ends in .warc.gz"
    )
    subresources_unknown: str = _setting(
        "REP_SUBRESOURCES_UNKNOWN", "abort", one_of("abort", "allow"), "'abort' or 'allow'"
    )
    purposes: tuple[str, ...] = _setting(
        "REP_PURPOSES", (), several_of(PURPOSES), describe_list_of(PURPOSES)
    )
    usage_action: str = _setting(
        "REP_USAGE_ACTION",
        "record",
        one_of("record", "drop-items", "drop"),
        "'record', 'drop-items' or 'drop'",
    )
    usage_unknown: str = _setting(
        "REP_USAGE_UNKNOWN", "allow", one_of("allow", "disallow"), "'allow' or 'disallow'"
    )
    usage_sources: tuple[str, ...] = _setting(
        "REP_USAGE_SOURCES",
        (CONTENT_USAGE, CONTENT_SIGNAL, TAGS),
        several_of(SOURCES),
        describe_list_of(SOURCES),
    )
    dry_run: bool = _setting("REP_DRY_RUN", False, boolean, "True or False")
    interactive: bool = _setting("REP_INTERACTIVE", False, boolean, "True or False")

    @classmethod
    def of(cls, crawler: Crawler) -> Options:
        """Return the options of a crawl. Raises SettingsError if a setting is not valid."""
        return get_or_add_part(crawler, cls, lambda: cls.from_settings(crawler.settings))

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Options:
        """Return the options in ``settings``.

        If a minimum is above a maximum, and only one of them is set, the default of the other gives
        way: it is replaced by the value that is set. Raises SettingsError if a setting is not
        valid, or if such a minimum and maximum are both set, with name, value and a description of
        valid values.
        """
        values, given = {}, set()
        for option in fields(cls):
            name = option.metadata["name"]
            value = settings.get(name)
            if value is None:
                value = option.default
            else:
                given.add(option.name)
            try:
                values[option.name] = option.metadata["parse"](value)
            except SettingsError:
                raise
            except (ValueError, TypeError, OverflowError):
                raise _invalid_value_error(option.metadata, value) from None
        for low, high in _RANGES:
            if values[low] <= values[high]:
                continue
            if {low, high} <= given:
                names = {each.name: each.metadata["name"] for each in fields(cls)}
                raise SettingsError(
                    f"{names[low]} is {values[low]!r}: "
                    f"it must be at most {names[high]}, which is {values[high]!r}"
                )
            # A default gives way to the value that is set.
            values[low] = values[high] = values[low if low in given else high]
        return cls(**values)

    @cached_property
    def policy(self) -> Policy:
        """The lifetimes, delays and limits that determine what may be fetched and until when."""
        return Policy(**{each.name: getattr(self, each.name) for each in fields(Policy)})

    @property
    def store_config(self) -> registry.StoreConfig:
        """The options of the store."""
        names = registry.StoreConfig._fields
        return registry.StoreConfig(*(getattr(self, name) for name in names))

    def as_dict(self) -> dict[str, Any]:
        """Return the values of all settings by name, without credentials."""
        return {
            option.metadata["name"]: option.metadata["shown"](getattr(self, option.name))
            for option in fields(self)
        }

    def non_default(self) -> dict[str, Any]:
        """Return the values that differ from their defaults, by name, without credentials."""
        defaults = Options().as_dict()
        return {name: value for name, value in self.as_dict().items() if value != defaults[name]}


def unknown_settings(settings: BaseSettings) -> dict[str, list[str]]:
    """Return unknown names in ``settings`` that begin with REP_, each with a list of similar names.

    The list has the most similar name of a setting of scrapy-rep, or is empty.
    """
    known = {option.metadata["name"] for option in fields(Options)}
    unknown = sorted(name for name in settings if name.startswith("REP_") and name not in known)
    # A high cutoff is needed, because the common prefix makes all names similar.
    return {name: get_close_matches(name, known, n=1, cutoff=0.8) for name in unknown}


def _invalid_value_error(metadata: Any, value: Any) -> SettingsError:
    name, shown, takes = metadata["name"], metadata["shown"](value), metadata["takes"]
    return SettingsError(f"{name} is {shown!r}: it must be {takes}")
