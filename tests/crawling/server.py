"""A web of sites that answer as told, one port each, in a process of its own.

Reads commands as JSON lines from its standard input and answers each with a JSON line:
``{"open": story}`` opens a site and gives its port, ``{"journal": port}`` gives what reached it,
``{"release": port}`` lets its answers go that are held, ``{"change": port, "answers": {...}}`` changes
its story. Ends with its input. A story maps paths (``*``: any other) to lists of answers, the last of
which repeats; an answer is a list of steps: ``["send", latin-1 text]``, ``["hold"]`` until the site is
released, which it is once for all, ``["wait", seconds]``, ``["repeat", latin-1 text, times, seconds
between]``, ``["close"]``, ``["reset"]``.
"""

import asyncio
import json
import os
import socket
import ssl
import struct
import sys
from collections import Counter
from contextlib import suppress
from time import time
from urllib.parse import urlsplit


class Site:
    def __init__(self, story):
        self.answers = story["answers"]
        self.journal = []
        self.asked = Counter()
        self.server = None
        self.released = asyncio.Event()

    async def serve(self, reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self.answer(reader, writer):
                pass
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    def change(self, answers):
        for path, those in answers.items():
            self.answers[path] = those
            self.asked[path] = 0

    async def answer(self, reader, writer):  # noqa: C901 - one branch for each step
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return False
        request, *lines = head.decode("latin-1").split("\r\n")
        method, target, *_ = request.split(" ")  # as lax servers do (RFC 9112 §3)
        headers = dict(line.lower().split(": ", 1) for line in lines if line)
        self.journal.append({"method": method, "target": target, "headers": headers, "at": time()})
        path = urlsplit(target).path if "://" in target else target
        with_cookie = f"{path} Cookie: {headers.get('cookie')}"
        path = with_cookie if with_cookie in self.answers else path
        answers = self.answers.get(path, self.answers["*"])
        steps = answers[min(self.asked[path], len(answers) - 1)]
        self.asked[path] += 1
        for name, *arguments in steps:
            if name == "send":
                writer.write(arguments[0].encode("latin-1"))
                await writer.drain()
            elif name == "hold":
                await self.released.wait()
            elif name == "wait":
                await asyncio.sleep(arguments[0])
            elif name == "repeat":
                text, times, pause = arguments
                for _ in range(times):
                    writer.write(text.encode("latin-1"))
                    await writer.drain()
                    if pause:
                        await asyncio.sleep(pause)
            elif name == "reset":
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, linger
                )
                return False
            elif name == "close":
                return False
        return True


async def main():
    sites = {}
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = json.loads(line)
        if "open" in command:
            story = command["open"]
            context = None
            if story.get("certificate"):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(story["certificate"])
            site = Site(story)
            site.server = await asyncio.start_server(
                site.serve, story.get("host", "127.0.0.1"), 0, ssl=context
            )
            port = site.server.sockets[0].getsockname()[1]
            sites[port] = site
            reply = port
        elif "release" in command:
            sites[command["release"]].released.set()
            reply = None
        elif "change" in command:
            sites[command["change"]].change(command["answers"])
            reply = None
        else:
            reply = sites[command["journal"]].journal
        print(json.dumps(reply), flush=True)
    os._exit(0)  # connections that hang are to be cut, not waited for


if __name__ == "__main__":
    asyncio.run(main())
