"""The interface of a store: records as bytes, and leases, by key.

The key of a record is its origin as text. A lease is a right that only one worker has, for a
limited time: to fetch a robots.txt, or to send the next request to a host. A store blocks, and
raises StoreError; it knows nothing of event loops. ``WriteBehind`` calls it for a crawl.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

PAUSE: Final = "pause"
"""The holder of a lease that no worker has: that of a host in a pause."""
_HOST: Final = "host:"
"""The first characters of the key of the lease of a host."""
WORKER: Final = "worker:"
"""The first characters of the key of a lease that says that a worker uses the store."""


def key_of_host(host: str) -> str:
    """Return the key of the lease of a host."""
    return f"{_HOST}{host}"


def host_of_key(key: str) -> str | None:
    """Return the host whose lease has ``key``; None if it is another lease."""
    return key.removeprefix(_HOST) if key.startswith(_HOST) else None


class StoreError(Exception):
    """Raised if a store can't be read or written now. A crawl continues without the store."""


class Lease(NamedTuple):
    """A lease that is valid."""

    holder: str
    left: float
    """Seconds until it ends."""


class Stored(NamedTuple):
    """A record."""

    state: bytes
    body: bytes
    """The last good copy; empty if there is none."""


class Found(NamedTuple):
    """What was found in a store."""

    records: Mapping[str, Stored]
    """By key, without those that are missing."""
    workers: int = 0
    """Number of workers that use the store now."""


class Put(NamedTuple):
    """Store a record, unless another process has stored a newer one."""

    key: str
    state: bytes
    body: bytes | None
    """None if the body that is stored stays."""
    at: float
    """Seconds since the epoch."""


class Claim(NamedTuple):
    """Give ``holder`` the lease of ``key`` for ``seconds`` from now, unless another has it.

    With ``force``, it is taken from another holder, and kept at least as long as that one would.
    """

    key: str
    holder: str
    seconds: float
    force: bool = False


class Release(NamedTuple):
    """End the lease of ``key``, if ``holder`` has it."""

    key: str
    holder: str


Change = Put | Claim | Release


class Store(Protocol):
    """Keeps records and leases by key. Except ``peek``, methods block, and raise StoreError.

    A store that outlives the process may be shared by several processes. Its content is not
    trusted: ``Record.decode`` refuses what it can't read.
    """

    is_shared: ClassVar[bool]
    """Whether other processes may use the store. If not, no method waits for anything."""

    def peek(self, keys: Sequence[str]) -> Found | None:
        """Return what ``read`` would; None if it would have to wait, or to be asked elsewhere."""

    def read(self, keys: Sequence[str]) -> Found:
        """Return the records of ``keys``, and how many workers there are."""

    def write(self, changes: Sequence[Change]) -> list[Lease | None]:
        """Make the changes in order; return for each Claim the lease afterwards, else None."""

    def pauses_left(self) -> Mapping[str, float]:
        """Return the keys whose leases PAUSE holds, and the seconds until each ends."""

    def keys(self) -> Iterator[str]:
        """Yield the keys of all records. One that is put or deleted meanwhile may be missing."""

    def delete(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one."""

    def close(self) -> None:
        """Close connections and files. A later call opens them again."""
