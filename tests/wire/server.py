"""Hosts on addresses of loopback, one port for all, in a process of its own, and what reached them.

    python server.py '{"127.0.1.1": {"robots": "User-agent: *\\nCrawl-delay: 1\\n"}}'

Prints its port. A line on standard input asks for the journal, which comes as a line of JSON: for each
host its requests, in the order of their arrival. The process ends with its input. What a host does is
its story, whose parts are the attributes of `Story`; a host without one has only pages.

The time of a request is when the kernel received the packet that ended its head, by the monotonic
clock: no delay of this process is in it. All processes of a machine have the same monotonic clock.
"""

import asyncio
import json
import math
import os
import socket
import struct
import sys
import time
from collections import defaultdict
from dataclasses import dataclass

SO_TIMESTAMPNS = getattr(socket, "SO_TIMESTAMPNS", 35)
BODY = b"<html><title>a page</title>words</html>"
CHECK_SECONDS = 0.05
LOST = object()


@dataclass
class Story:
    robots: str | None = None
    """Its robots.txt; without one, the answer is 404."""
    changed: tuple[float, str] | None = None
    """Its robots.txt from so many seconds on after the first request for it."""
    robots_seconds: float = 0.0
    """How long its robots.txt takes."""
    robots_failures: int = 0
    """How many requests for it are answered with 503, before others."""
    max_age: int | None = None
    """``Cache-Control: max-age`` of robots.txt."""
    refuses: tuple[int, int, int] | None = None
    """The page with this number, and all for some seconds from then on, have this status."""
    hangs: bool = False
    """Whether it answers nothing after the seconds in which it refuses."""
    closes: bool = False
    """Whether each request takes a connection of its own."""
    loses: int | None = None
    """The page with this number gets no answer: its connection is closed."""
    redirects: str | None = None
    """The address to which it redirects its pages."""
    opens: str | None = None
    """The address of a host: pages are answered a second after that host began to refuse."""
    seconds: float = 0.05
    """How long an answer takes; of the first after a refusal, ten times as long."""


class Host:
    def __init__(self, story):
        self.story = story
        self.journal = []
        self.first_robots = None
        self.robots = self.pages = 0
        self.refused_at = None
        self.is_probed = False

    async def robots_answer(self, at):
        story = self.story
        if self.first_robots is None:
            self.first_robots = at
        await asyncio.sleep(story.robots_seconds)
        self.robots += 1
        if self.robots <= story.robots_failures:
            return 503, {}, b""
        text = story.robots
        if story.changed is not None and at - self.first_robots >= story.changed[0]:
            text = story.changed[1]
        if text is None:
            return 404, {}, b""
        age = {} if story.max_age is None else {"Cache-Control": f"max-age={story.max_age}"}
        return 200, {"Content-Type": "text/plain", **age}, text.encode()

    def seconds_of_refusal(self):
        """Return the seconds for which pages are refused from now on; the first begins them."""
        number, _, pause = self.story.refuses
        if self.pages == number:
            self.refused_at = time.monotonic()
        if self.refused_at is None:
            return 0.0
        return self.refused_at + pause - time.monotonic()


class Web:
    def __init__(self, stories):
        self.stories = stories
        self.hosts = {}
        self.port = 0

    def host(self, address):
        if address not in self.hosts:
            self.hosts[address] = Host(Story(**self.stories.get(address, {})))
        return self.hosts[address]

    async def answer(self, host, path, at):
        """Return the status, headers and body of an answer when it is to be sent.

        None if there is to be none, LOST if the connection is to be closed in place of it.
        """
        story = host.story
        if path == "/robots.txt":
            return await host.robots_answer(at)
        host.pages += 1
        if host.pages == story.loses:
            return LOST
        if story.opens is not None:
            await self.until_refused(self.host(story.opens))
        seconds = story.seconds
        if story.refuses is not None:
            left = host.seconds_of_refusal()
            if left > 0:
                return story.refuses[1], {"Retry-After": str(math.ceil(left))}, b""
            if host.refused_at is not None:
                if story.hangs:
                    return None
                seconds *= 1 if host.is_probed else 10
                host.is_probed = True
        await asyncio.sleep(seconds)
        if story.redirects is not None:
            return 302, {"Location": f"http://{story.redirects}:{self.port}{path}"}, b""
        return 200, {"Content-Type": "text/html"}, BODY

    async def until_refused(self, host):
        """Wait until a second after ``host`` began to refuse."""
        while host.refused_at is None or time.monotonic() < host.refused_at + 1:
            await asyncio.sleep(CHECK_SECONDS)


class Connection:
    def __init__(self, web, sock):
        self.web = web
        self.sock = sock
        self.data = b""
        self.tasks = set()
        sock.setblocking(False)
        asyncio.get_running_loop().add_reader(sock, self.read)

    def read(self):
        try:
            data, ancillary, *_ = self.sock.recvmsg(2**16, 256)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        at = arrival(ancillary)
        self.data += data
        while b"\r\n\r\n" in self.data:
            head, _, self.data = self.data.partition(b"\r\n\r\n")
            task = asyncio.ensure_future(self.serve(head.decode("latin-1"), at))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def serve(self, head, at):
        request, *lines = head.split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        path = request.split(" ")[1]
        host = self.web.host(headers["host"].partition(":")[0])
        entry = {"at": at, "path": path, "agent": headers.get("user-agent", "")}
        entry.update({"status": None, "answered": None, "retry_after": None})
        host.journal.append(entry)
        answer = await self.web.answer(host, path, at)
        if answer is None:
            return
        if answer is LOST:
            entry["status"] = "lost"
            self.close()
            return
        status, more, body = answer
        if host.story.closes:
            more["Connection"] = "close"
        entry["status"], entry["retry_after"] = status, more.get("Retry-After")
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in more.items())]
        lines.append(f"Content-Length: {len(body)}\r\n\r\n")
        entry["answered"] = time.monotonic()
        try:
            self.sock.send("\r\n".join(lines).encode() + body)
        except OSError:
            self.close()
        if host.story.closes:
            self.close()

    def close(self):
        if self.sock.fileno() != -1:
            asyncio.get_running_loop().remove_reader(self.sock)
            self.sock.close()


def arrival(ancillary):
    """Return when the kernel received what was read, or else the time now."""
    now = time.monotonic()
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            seconds, nanoseconds = struct.unpack("ll", data[:16])
            return now - max(0.0, time.time() - seconds - nanoseconds / 1e9)
    return now


async def main():
    web = Web(json.loads(sys.argv[1]))
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("0.0.0.0", 0), backlog=4096)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    listener.setblocking(False)

    def accept():
        sock, _ = listener.accept()
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Connection(web, sock)

    loop.add_reader(listener, accept)
    web.port = listener.getsockname()[1]
    print(web.port, flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        journal = defaultdict(list)
        for address, host in web.hosts.items():
            journal[address] = sorted(host.journal, key=lambda entry: entry["at"])
        print(json.dumps(journal), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
