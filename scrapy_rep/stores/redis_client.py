"""The client of redis-py for REP_STORE: for one server, a cluster, or a primary by its sentinels.

redis-py has URLs for one server only. Those for the others are ``redis+cluster://host,host`` and
``redis+sentinel://host,host/service``, as in libraries that build on it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from redis import ConnectionPool, Redis, RedisCluster, RedisError
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode
from redis.connection import parse_url
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ReadOnlyError, RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

ERRORS: Final = (RedisError, RedisClusterException, OSError)
"""Exceptions that a call of a client may raise."""
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"cluster": 6379, "sentinel": 26379}
_PATHS: Final = {"cluster": "(/0?)?", "sentinel": "/[^/]+(/[0-9]*)?"}
"""A cluster has no databases; a primary is found by the name of its service."""
_TRIES: Final = 3
"""Number of tries of a call while a cluster changes."""


class Connector:
    """The client for a URL."""

    def __init__(self, uri: str, *, timeout: float) -> None:
        """Parse a URL, without connecting. Raises ValueError."""
        self._kind, self._hosts, self._path, url = _parts(uri)
        try:
            # redis-py gives it no types.
            options: dict[str, Any] = parse_url(url)  # type: ignore[no-untyped-call]
            self._sentinel = {
                name: options.pop(f"sentinel_{name}")
                for name in ("username", "password")
                if f"sentinel_{name}" in options
            }
            self._secrets = [
                str(each[name])
                for each in (options, self._sentinel)
                for name in ("password", "username")
                if each.get(name)
            ]
            self._limits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
            options.update(self._limits, decode_responses=False, client_name="scrapy-rep")
            self._client = None if self.is_cluster else self._client_of(options)
        except (ValueError, TypeError, RedisError):
            raise ValueError("redis-py can't read that URL") from None
        self._options = options

    @property
    def is_cluster(self) -> bool:
        """Whether the keys are on several servers."""
        return self._kind == "cluster"

    def client(self) -> Any:
        """Return the client, the same each time. Raises what is in ERRORS."""
        if self._client is None:
            # The client of a cluster connects at once, to ask for its nodes.
            self._client = self._cluster(dict(self._options))
        return self._client

    def close(self) -> None:
        """Close all connections; they open again when they are used."""
        if self._client is not None and self.is_cluster:
            self._client.close()
            self._client = None
        elif self._client is not None:
            self._client.connection_pool.disconnect()

    def told(self, error: BaseException) -> str:
        """Return the message of an error without credentials."""
        if isinstance(error, ReadOnlyError):
            return (
                "it is a read-only replica: REP_STORE must name the primary, or the sentinels "
                "that know it (redis+sentinel://)"
            )
        message = f"{type(error).__name__}: {error}"
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return message

    def _client_of(self, options: dict[str, Any]) -> Any:
        # A connection that the server has closed, or a former primary, is worth one more try.
        retry = Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
        if not self._kind:
            return Redis(connection_pool=ConnectionPool(**options, retry=retry))
        service, _, database = self._path.strip("/").partition("/")
        options = self._without_place(options)
        tls = {name: value for name, value in options.items() if name.startswith("ssl")}
        asked = {**self._limits, **tls, **self._sentinel}
        # redis-py gives them no types.
        make: Any = Sentinel
        sentinels = make(self._hosts, sentinel_kwargs=asked, **options)
        return sentinels.master_for(service, db=int(database or 0), retry=retry)

    def _cluster(self, options: dict[str, Any]) -> Any:
        node: Any = ClusterNode
        nodes = [node(host, port) for host, port in self._hosts]
        options = self._without_place(options)
        return RedisCluster(startup_nodes=nodes, retry=Retry(NoBackoff(), _TRIES), **options)

    @staticmethod
    def _without_place(options: dict[str, Any]) -> dict[str, Any]:
        """Return options without the address of a server; TLS becomes the option ``ssl``."""
        tls = {"ssl": True} if options.pop("connection_class", None) is not None else {}
        place = ("host", "port", "db", "path")
        return {**{name: options[name] for name in options if name not in place}, **tls}


def names_hosts(uri: str) -> bool:
    """Return whether the URI of a cluster or of sentinels is valid."""
    try:
        _parts(uri)
    except ValueError:
        return False
    return True


def _parts(uri: str) -> tuple[str, list[tuple[str, int]], str, str]:
    """Return kind, hosts and path of ``uri``, and a URL that redis-py can parse.

    Raises ValueError.
    """
    scheme, _, rest = uri.partition("://")
    base, _, kind = scheme.partition("+")
    if not kind:
        return "", [], "", uri
    found = re.fullmatch(r"([^/?#]*)([^?#]*)(.*)", rest)
    netloc, path, query = found.groups() if found else ("", "", "")
    user, at, places = netloc.rpartition("@")
    hosts = []
    for place in places.split(","):
        host = _HOST.fullmatch(place)
        if host is None:
            raise ValueError("no host")
        hosts.append((host["host"].strip("[]"), int(host["port"] or _PORTS[kind])))
    if not re.fullmatch(_PATHS[kind], path):
        raise ValueError("not its path")
    return kind, hosts, path, f"{base}://{user}{at}{places.partition(',')[0]}{query}"
