"""The interfaces of a store: ``Store`` for crawls, ``BareStore`` for commands.

A store keeps records and leases. A record contains how the last fetches of a robots.txt ended. A
lease is a right that only one worker has, for a limited time. The lease of an origin is the right
to fetch its robots.txt: all others wait until that worker has put the record. The lease of a host
is the right to send the next request to it, so that all workers together keep its delay, and its
pauses.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final, NamedTuple, Protocol

from scrapy_rep.protocol.record import Record

PAUSE: Final = "pause"
"""The holder of leases that no worker has: that of a host in a pause, and those of REFUSED."""
HOST: Final = "host"
"""The kind of the lease of a host: see ``key_of_host``."""
REFUSED: Final = "refused"
"""The kind of a lease that marks a host that has refused. PAUSE holds it from the refusal until
another response, or some time after the pause."""


def key_of_host(host: str, kind: str = HOST) -> str:
    """Return the key of a lease of ``kind`` that concerns a host."""
    return f"{kind}:{host}"


def host_of_key(key: str, kind: str = HOST) -> str | None:
    """Return the host that a lease of ``kind`` concerns; None if ``key`` is of another kind."""
    prefix, _, host = key.partition(":")
    return host if prefix == kind else None


class StoreError(Exception):
    """Raised if a store can't be read or written now. A crawl continues without the store."""


class Lease(NamedTuple):
    """A lease that is valid: a right that one worker has for a limited time."""

    holder: str
    """The name under which the worker has claimed the lease."""
    left: float
    """Seconds until it ends."""


class RecordAndLease(NamedTuple):
    """The record of a key, and its lease."""

    record: Record | None
    """The last record that was put; None if there is no record, or none that can be decoded."""
    lease: Lease | None
    """The lease of the key; None if there is none that is valid."""

    @property
    def holder(self) -> str | None:
        """The name of the worker that holds the lease; None if there is no valid lease."""
        return None if self.lease is None else self.lease.holder


def newer_record(stored: Record | None, ours: Record | None) -> Record | None:
    """Return the record that was fetched later; if its fetch has failed, ``after`` the other one.

    If both were fetched at once, it is ``stored``, unless that has no copy.
    """
    if stored is None or ours is None:
        return stored or ours
    if stored.last.evidence.at == ours.last.evidence.at:
        return ours if stored.copy is None else stored
    older, newer = sorted((stored, ours), key=lambda record: record.last.evidence.at)
    return newer.after(older) if newer.of_origin and older.of_origin else newer


class Store(Protocol):
    """Stores records and leases by key.

    The key of a record, and of the lease to fetch it, is the origin as text; the lease of a host
    has a key of its own. A
    store that outlives the process may be shared by several processes: each process gets the
    records and leases of all processes. The content of a store is not trusted: a record that
    ``Record.decode`` refuses counts as missing. It refuses records above ``max_encoded_size``, so a
    store doesn't check the size, but should not load larger values into memory. All methods raise
    StoreError if the store can't be read, or written.
    """

    async def get(self, key: str) -> RecordAndLease:
        """Return the record and the lease of ``key``, each None without one that can be used."""

    async def claim(
        self, key: str, holder: str, seconds: float, *, force: bool = False, if_absent: bool = False
    ) -> RecordAndLease:
        """Give ``holder`` the lease of ``key`` for ``seconds`` from now, unless another has it.

        With ``force``, ``holder`` gets the lease from whoever has it, and keeps it at least as long
        as that one would have. With ``if_absent``, the lease is only given if the store has no
        record, not even one that can't be decoded. Return the record and the lease as they are
        afterwards: look at the holder to see who has it, or if nobody has. The record is read after
        the lease was given, so a worker that gets the lease after another worker's fetch gets the
        new record.
        """

    async def pauses_left(self) -> Mapping[str, float]:
        """Return the keys whose leases ``PAUSE`` holds, and the seconds until each ends.

        Those of the kind HOST are pauses, those of REFUSED are marks, which outlast the pause.
        """

    async def put(self, record: Record, holder: str | None = None) -> None:
        """Store ``record`` in place of that of its file; end its lease, if ``holder`` has it."""

    async def release(self, key: str, holder: str) -> None:
        """End the lease of ``key``, if ``holder`` has it."""

    async def close(self) -> None:
        """Finish all writes, and close connections and files. A later call opens them again."""


class BareStore(Store, Protocol):
    """A store whose errors are raised, for commands that list and change records.

    Crawls use a store with a guard (``stores/guarded.py``), which raises no errors.
    """

    def scan_keys(self) -> AsyncIterator[str]:
        """Yield the keys of all records, including records that can't be decoded.

        A key whose record is put or deleted meanwhile may be missing, and a key may come twice.
        """

    async def discard(self, key: str) -> bool:
        """Delete the record of ``key``; return whether there was one."""

    async def prune(self) -> int:
        """Delete records that are too old, or too many, as crawls do, too; return how many."""
