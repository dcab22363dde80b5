"""Servers on loopback that note the target of each request as it came, in octets.

A request says which it is in its ``X-Number``, on FTP by its user; ``targets`` and ``servers`` have
by that number what came, and of whom it was asked (``Host``, ``:authority``).
"""

import asyncio
import ssl
from contextlib import suppress

_HEAD = b"\r\n\r\n"


class Wire:
    """A server of one protocol, and what reached it."""

    scheme = "http"

    def __init__(self):
        self.targets = {}
        self.servers = {}
        self.port = None
        self._listening = []

    async def serve(self, reader, writer):
        """Answer what comes, with nothing."""
        raise NotImplementedError

    async def _serve(self, reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await self.serve(reader, writer)
        writer.close()

    async def open(self, certificate):
        context = None
        if self.scheme == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.set_alpn_protocols(["h2"])
        for address in ("127.0.0.1", "::1"):
            with suppress(OSError):  # no IPv6 here
                server = await asyncio.start_server(
                    self._serve, address, self.port or 0, ssl=context
                )
                self.port = server.sockets[0].getsockname()[1]
                self._listening.append(server)

    def close(self):
        for server in self._listening:
            server.close()


class Http(Wire):
    """HTTP/1.1, and a proxy that answers itself."""

    async def serve(self, reader, writer):
        while True:
            head = await reader.readuntil(_HEAD)
            line, *fields = head[: -len(_HEAD)].split(b"\r\n")
            # A target with a blank in it is to be seen whole.
            target = line.partition(b" ")[2].rpartition(b" ")[0]
            headers = dict(field.lower().split(b": ", 1) for field in fields)
            number = int(headers[b"x-number"])
            self.targets[number] = target
            self.servers[number] = headers[b"host"].decode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Http2(Wire):
    scheme = "https"

    async def serve(self, reader, writer):
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import RequestReceived

        connection = H2Connection(
            H2Configuration(client_side=False, header_encoding=None, validate_inbound_headers=False)
        )
        connection.initiate_connection()
        writer.write(connection.data_to_send())
        while data := await reader.read(2**16):
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    headers = dict(event.headers)
                    number = int(headers[b"x-number"])
                    self.targets[number] = headers[b":path"]
                    self.servers[number] = headers[b":authority"].decode()
                    connection.send_headers(
                        event.stream_id, [(b":status", b"200")], end_stream=True
                    )
            writer.write(connection.data_to_send())


class Ftp(Wire):
    """FTP that has no file at all."""

    scheme = "ftp"

    async def open(self, certificate):
        await super().open(certificate)
        # Nothing comes over its data connections.
        data = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        self._listening.append(data)
        self.data_port = data.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        writer.write(b"220 ready\r\n")
        number = None
        while line := await reader.readuntil(b"\r\n"):
            command, _, argument = line[:-2].partition(b" ")
            if command == b"USER":
                number = int(argument)
                writer.write(b"331 password\r\n")
            elif command == b"PASV":
                writer.write(b"227 (127,0,0,1,%d,%d)\r\n" % divmod(self.data_port, 256))
            elif command == b"RETR":
                self.targets[number] = argument
                writer.write(b"550 no such file\r\n")
                return  # the handler of Scrapy 2.14 never closes a connection
            else:
                writer.write(b"230 fine\r\n")
