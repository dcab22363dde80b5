"""The redis-py client for a URI of REP_STORE: for a single server, a cluster, or sentinels.

redis-py only reads URLs of a single server. For a cluster and for sentinels the URIs have the form
that other libraries use: ``redis+cluster://host,host`` and ``redis+sentinel://host,host/service``.
"""

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
"""The exceptions that a call of the client may raise."""
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@\s]+)(?::(?P<port>[0-9]{1,5}))?")
_PORTS: Final = {"cluster": 6379, "sentinel": 26379}
_PATHS: Final = {"cluster": "(/0?)?", "sentinel": "/[^/]+(/[0-9]*)?"}
"""Valid paths by kind of URI. A cluster has no database other than 0. For sentinels, the path is
the name of a service, and optionally the number of a database."""
_TRIES: Final = 3
"""Number of retries of a call of a cluster, for example while its nodes change."""


class Connector:
    """Makes and closes the redis-py client for a URI of REP_STORE."""

    def __init__(self, uri: str, *, timeout: float) -> None:
        """Raise ValueError if ``uri`` can't be read; open nothing. ``timeout`` is in seconds."""
        self._kind, self._hosts, self._path, url = parts_of(uri)
        try:
            # redis-py declares no types for this function.
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
            if self._client is not None:
                # redis-py checks the options when it makes a connection object. This one is made
                # for the check, and is not opened.
                pool = ConnectionPool(**options)
                pool.connection_class(**pool.connection_kwargs)
        except (ValueError, TypeError, RedisError):
            raise ValueError("redis-py can't read that URL") from None
        self._options = options

    @property
    def is_cluster(self) -> bool:
        """Whether the URI is that of a cluster, whose keys are on several servers."""
        return self._kind == "cluster"

    def client(self) -> Any:
        """Return the client, the same until ``close``. Raises ERRORS if a cluster isn't reached."""
        if self._client is None:
            # The client of a cluster is made only now, because this opens connections.
            node: Any = ClusterNode
            nodes = [node(host, port) for host, port in self._hosts]
            options = self._without_address(self._options)
            retry = Retry(NoBackoff(), _TRIES)
            self._client = RedisCluster(startup_nodes=nodes, retry=retry, **options)
        return self._client

    def close(self) -> None:
        """Close all connections. The next call of the client opens them again."""
        if self._client is not None and self.is_cluster:
            self._client.close()
            self._client = None
        elif self._client is not None:
            self._client.connection_pool.disconnect()

    def message_of(self, error: BaseException) -> str:
        """Return type and message of ``error``, with credentials of the URI replaced by ``***``.

        For a server that is a read-only replica, return what to set instead.
        """
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
        """Return the client of a single server, or of the primary of the sentinels."""
        # One retry, because the server may have closed an idle connection, or another server may
        # have become the primary of the sentinels.
        retry = Retry(NoBackoff(), 1, supported_errors=(RedisConnectionError,))
        if not self._kind:
            return Redis(connection_pool=ConnectionPool(**options, retry=retry))
        service, _, database = self._path.strip("/").partition("/")
        options = self._without_address(options)
        tls = {name: value for name, value in options.items() if name.startswith("ssl")}
        sentinel_options = {**self._limits, **tls, **self._sentinel}
        # redis-py declares no types for this class.
        make: Any = Sentinel
        sentinels = make(self._hosts, sentinel_kwargs=sentinel_options, **options)
        return sentinels.master_for(service, db=int(database or 0), retry=retry)

    @staticmethod
    def _without_address(options: dict[str, Any]) -> dict[str, Any]:
        """Return ``options`` without the address of a server, and with ``ssl`` if TLS is used."""
        # redis-py represents TLS in a URL by this class, which clients with several hosts refuse.
        tls = {"ssl": True} if "connection_class" in options else {}
        place = {"host", "port", "db", "path", "connection_class"}
        return {**{name: options[name] for name in options if name not in place}, **tls}


def parts_of(uri: str) -> tuple[str, list[tuple[str, int]], str, str]:
    """Return the kind of ``uri``, its hosts, its path, and a URL that redis-py can read.

    The kind is ``cluster``, ``sentinel``, or empty for a single server, whose URI is returned
    unchanged. Raises ValueError if a host or the path is not valid.
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
