"""A proxy in front of a Redis, which fails at the calls of scripts and ZADD that a test names."""

import socket
from threading import Thread

PASSES, IS_REFUSED = "passes", "is refused"


class RedisProxy:
    """Counts these calls; ``fate`` tells what becomes of the one with a number.

    A call that is refused is not made, and ends the connection.
    """

    def __init__(self, port):
        self.behind = port
        """The port of the Redis to which connections go."""
        self.calls = 0
        self.fate = lambda _: PASSES
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        Thread(target=self._accept, daemon=True).start()

    @property
    def uri(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def stop(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client):
        server = socket.create_connection(("127.0.0.1", self.behind))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client, server, client.makefile("rb") as commands, server.makefile("rb") as replies:
            while command := _read(commands):
                fate = PASSES
                if b"EVALSHA" in command[:30] or b"ZADD" in command[:30]:
                    self.calls += 1
                    fate = self.fate(self.calls)
                if fate == IS_REFUSED:
                    return
                server.sendall(command)
                client.sendall(_read(replies))


def _read(file):
    """Return one value of the protocol, as it is; empty at the end."""
    line = file.readline()
    kind, number = line[:1], line[1:-2]
    if kind == b"$" and number != b"-1":
        return line + file.read(int(number) + 2)
    if kind in {b"*", b"~", b">", b"%"}:
        values = max(0, int(number)) * (2 if kind == b"%" else 1)
        return line + b"".join(_read(file) for _ in range(values))
    return line
