"""The entries of REP_OVERRIDES: policies that replace robots.txt for some hosts."""

import json
import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from scrapy.crawler import Crawler
from scrapy.utils.conf import closest_scrapy_cfg

from scrapy_rep import stats
from scrapy_rep.exceptions import SettingsError
from scrapy_rep.protocol.origin import DEFAULT_PORTS, ROBOTSTXT, origin_of
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.product_tokens import Tokens, tokens_of_setting
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Reason, Verdict
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.setting_readers import NotTakenError, Reader

TAKES: Final = "a list of dicts, each with a host, a policy and a reason, or the same as JSON"
POLICIES: Final = ("ignore", "disallow", "file", "agent")
_NEEDS: Final = {"file": ["path"], "agent": ["agent"]}
_KEYS: Final = ("host", "policy", "reason", "until")
_LAST_DAY: Final = datetime(9999, 12, 30)  # noqa: DTZ001 - there is no day after 9999-12-31
_ALLOWED: Final = Verdict(allowed=True, reason=Reason.OVERRIDE)
DISALLOWED: Final = Verdict(allowed=False, reason=Reason.OVERRIDE)


@dataclass(frozen=True)
class Override:
    """A valid entry of REP_OVERRIDES, which may have expired. Its file is read only once."""

    host: str
    """A host name; or ``.`` and a domain, which means the domain and all its subdomains."""
    policy: str
    reason: str
    until: float | None = None
    """The time at which the entry expires, in seconds since the epoch; None if it doesn't."""
    path: str | None = None
    """The path of the file with the rules, as written by the user, if ``policy`` is ``file``."""
    tokens: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = " ".join(filter(None, (self.policy, self.path, ", ".join(self.tokens))))
        return f"{what} for {self.host} ({self.reason})"

    @cached_property
    def file(self) -> Path | None:
        # Without a project this is "", whose parent is the current directory.
        project = Path(closest_scrapy_cfg()).parent
        return None if self.path is None else (project / self.path).absolute()

    @cached_property
    def body(self) -> bytes:
        """The content of the file, read when ``Overrides`` is created. Raises OSError."""
        return b"" if self.file is None else self.file.read_bytes()

    @property
    def until_text(self) -> str | None:
        if self.until is None:
            return None
        return datetime.fromtimestamp(self.until, timezone.utc).isoformat(sep=" ")

    def as_dict(self) -> dict[str, str | None]:
        values = {"host": self.host, "policy": self.policy, "reason": self.reason}
        return {**values, "until": self.until_text}


class Overrides:
    """All entries of REP_OVERRIDES: the most specific one of a host applies, until it expires."""

    def __init__(self, entries: Iterable[Override], clock: Callable[[], float]) -> None:
        """Read the files of entries that have not expired. Raises SettingsError."""
        self._clock = clock
        self._by_host: dict[str, Override] = {}
        self._rules: dict[str, RobotsTxt] = {}
        self.expired: list[Override] = []
        for entry in entries:
            if entry.until is not None and entry.until <= clock():
                self.expired.append(entry)
                continue
            self._by_host[entry.host] = entry
            try:
                self._rules[entry.host] = RobotsTxt.parse(entry.body)
            except OSError as error:
                message = f"REP_OVERRIDES names a file that can't be read: {error}"
                raise SettingsError(message) from None

    def __bool__(self) -> bool:
        return bool(self._by_host)

    def of_host(self, host: str) -> Override | None:
        """Return the most specific entry that applies to ``host``, or None; remove expired ones."""
        host = host.rstrip(".")  # the same host with a dot at the end of its name
        labels = host.split(".")
        for name in (host, *("." + ".".join(labels[at:]) for at in range(len(labels)))):
            entry = self._by_host.get(name)
            if entry is None:
                continue
            if entry.until is None or self._clock() < entry.until:
                return entry
            del self._by_host[name]
            self.expired.append(entry)
        return None

    def verdict(self, entry: Override, target: str, tokens: Tokens) -> Verdict | None:
        """Return the verdict of ``entry`` on ``target``; None if robots.txt decides (``agent``)."""
        if target == ROBOTSTXT:
            return ALLOWED_ROBOTSTXT
        if entry.file is not None:
            verdict = self._rules[entry.host].rules_for(*tokens).verdict_for(target)
            return verdict._replace(robotstxt_url=entry.file.as_uri())
        return {"ignore": _ALLOWED, "disallow": DISALLOWED}.get(entry.policy)


@partial(Reader, TAKES)
def overrides_reader(value: Any) -> tuple[Override, ...]:
    """Return the entries. Raise SettingsError with an entry that is not valid, and why."""
    if isinstance(value, str):
        try:
            value = json.loads(value.strip() or "[]")
        except ValueError as error:
            raise NotTakenError(f"{TAKES}; {error}") from None
    if not isinstance(value, list | tuple):
        raise TypeError
    entries: dict[str, Override] = {}
    for number, each in enumerate(value, 1):
        try:
            entry = _parse_entry(each, entries)
        except ValueError as error:
            raise SettingsError(f"REP_OVERRIDES: entry {number}, {each!r}: {error}") from None
        entries[entry.host] = entry
    return tuple(entries.values())


def _parse_entry(entry: Any, others: Collection[str]) -> Override:
    if not isinstance(entry, dict):
        raise ValueError("it must be a dict")  # noqa: TRY004 - the error of all invalid entries
    policy = entry.get("policy")
    if policy not in POLICIES:
        raise ValueError(f"'policy' must be one of {', '.join(POLICIES)}")
    taken = [*_KEYS, *_NEEDS.get(policy, ())]
    unknown = [key for key in entry if key not in taken]
    if unknown:
        raise ValueError(
            f"unknown keys: {', '.join(map(str, unknown))}; allowed: {', '.join(taken)}"
        )
    reason = entry.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise ValueError("'reason' is required")
    path = entry.get("path")
    if policy == "file" and (
        not isinstance(path, str | Path) or not str(path) or "\0" in str(path)
    ):
        raise ValueError("'path' must name the file with the rules")
    tokens = parse_tokens(entry.get("agent")) if policy == "agent" else ()
    host = _parse_host(entry.get("host"))
    if host in others:
        raise ValueError("there is one for this host already")
    until = _parse_until(entry.get("until"))
    return Override(host, policy, reason.strip(), until, path and str(path), tokens)


def _parse_host(value: Any) -> str:
    """Return the host as ``Origin.host``, with the dot before it that ``value`` has, none after."""
    if isinstance(value, str) and "*" in value:
        raise ValueError("'host' takes no '*': '.example.com' is that host and all its subdomains")
    if isinstance(value, str):
        dot = "." if value.startswith(".") else ""
        name = value.removeprefix(".")
        brackets = "[{}]" if ":" in name and not name.startswith("[") else "{}"
        with suppress(ValueError):
            origin = origin_of(f"http://{brackets.format(name)}/")
            if name and not set(name) & set("/@") and origin.port == DEFAULT_PORTS["http"]:
                return f"{dot}{origin.host.rstrip('.')}"
    raise ValueError("'host' must be a host name, or '.' and a domain, without scheme and port")


def parse_tokens(value: Any) -> tuple[str, ...]:
    """Return the product tokens in a setting. Raises ValueError if there is none."""
    if isinstance(value, str | list | tuple) and all(isinstance(item, str) for item in value):
        tokens = tokens_of_setting(value)
        if tokens:
            return tokens
    raise ValueError("'agent' must be a product token or a list of them")


def _parse_until(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, str | date):
        # In Python 3.10, fromisoformat() doesn't accept a Z for UTC.
        text = re.sub(r"Z\Z", "+00:00", str(value))
        with suppress(ValueError, OverflowError):
            until = datetime.fromisoformat(text)
            if len(text) == len("2026-12-31"):  # the day counts until its end
                until = min(until, _LAST_DAY) + timedelta(days=1)
            if until.tzinfo is None:
                until = until.replace(tzinfo=timezone.utc)
            seconds = until.timestamp()
            datetime.fromtimestamp(seconds, timezone.utc)  # raises if the year is not valid
            return seconds
    raise ValueError("'until' must be a date, such as 2026-12-31, or a date and time, in UTC")


class OverrideLog:
    """Logs and counts the overrides that apply."""

    def __init__(self, crawler: Crawler, overrides: Overrides) -> None:
        self._crawler = crawler
        self._logger = LimitedLogger(__name__, crawler)
        self._overrides = overrides
        self._used: set[Override] = set()

    def report(self, override: Override | None, *, returned: bool) -> None:
        """Count that ``override`` applies to a request; log its first use.

        If the request was ``returned`` before, an override with product tokens has been counted.
        """
        self.log_expired()
        if override is None or (returned and override.tokens):
            return
        stats.count(self._crawler, stats.OVERRIDE_COUNT.format(policy=override.policy))
        if override not in self._used:
            self._used.add(override)
            self._logger.info("Override in use: %a", str(override))

    def log_expired(self) -> None:
        message = "Override expired at %s, robots.txt is obeyed again: %a"
        while self._overrides.expired:
            override = self._overrides.expired.pop()
            self._logger.warning(message, override.until_text, str(override))
