"""The fleet's web: two hundred origins on loopback, in one process.

One asks for two seconds between two requests, one can't be reached for ten seconds.
Serves until its standard input ends. Prints its origins as a JSON line when it is ready, and then,
for every line of input, what has reached it as another.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from time import monotonic

ORIGINS = 200
ASKING = 50
"""The number of the origin that asks for a delay; as that is of its host, it has one of its own."""
DOWN = 120
"""The number of the origin that can't be reached at first."""
DOWN_SECONDS = 10
DELAY = 2
HOSTS = {ASKING: "127.0.0.2", DOWN: "127.0.0.3"}
PAGES = 6
"""Pages of an origin that may be fetched."""
PRIVATE = 4
"""Pages of an origin that may not, where its robots.txt says so."""
RULES = (
    "User-agent: *\nDisallow: /private\n",
    "User-agent: fleetbot\nDisallow: /*/hidden\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n",
    "User-agent: otherbot\nDisallow: /\n\nUser-agent: *\nDisallow: /private/\nAllow: /\n",
    None,
)
"""What the origins' robots.txt say, by turns; None is a 404."""


class Site:
    """One origin: a few pages that link to each other and to other origins."""

    def __init__(self, web: list[Site], number: int) -> None:
        self.web = web
        self.number = number
        self.rules = RULES[number % len(RULES)]
        self.seconds = (0.05, 0.2, 0.5)[number % 3]
        if number == ASKING:
            self.rules = f"User-agent: *\nCrawl-delay: {DELAY}\nDisallow: /private\n"
        self.down_until = 0.0
        self.url = ""
        self.asked: Counter[str] = Counter()
        self.times: list[float] = []

    async def open(self) -> None:
        """Begin to serve, on a port of the system's choice."""
        host = HOSTS.get(self.number, "127.0.0.1")
        server = await asyncio.start_server(self._serve, host, 0)
        self.url = f"http://{host}:{server.sockets[0].getsockname()[1]}"

    async def answer(self, target: str) -> tuple[str, str, str]:
        """Return status, content type and text."""
        self.asked[target] += 1
        if target == "/robots.txt":
            # Slow enough for the whole fleet to come in the meantime.
            await asyncio.sleep(self.seconds)
            if self.rules is None:
                return "404 Not Found", "text/plain", ""
            return "200 OK", "text/plain", self.rules
        self.times.append(monotonic())
        near = [self.web[(self.number + step) % len(self.web)] for step in (1, 7, 50)]
        links = [f"{self.url}/private/{n}" for n in range(PRIVATE)]
        links += [f"{self.url}/{n}" for n in range(PAGES)]
        links += [f"{site.url}/0" for site in near]
        return "200 OK", "text/html", "\n".join(f'<a href="{link}">a page</a>' for link in links)

    @property
    def journal(self) -> dict[str, float]:
        """What reached the origin."""
        pages = {target: n for target, n in self.asked.items() if target != "/robots.txt"}
        forbidden = 0
        if self.rules is not None:
            forbidden = sum(n for target, n in pages.items() if target.startswith("/private"))
        return {
            "robots": self.asked["/robots.txt"],
            "pages": sum(pages.values()) - forbidden,
            "disallowed": forbidden,
            "lost": sum(f"/{n}" not in pages for n in range(PAGES)),
            "gap": min((b - a for a, b in pairwise(self.times)), default=0.0),
        }

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if self.number == DOWN:
                    self.down_until = self.down_until or monotonic() + DOWN_SECONDS
                    if monotonic() < self.down_until:
                        break
                answer = await self.answer(head.split(b" ", 2)[1].decode("latin-1"))
                status, content_type, text = answer
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
                    f"Content-Length: {len(text)}\r\n\r\n{text}".encode()
                )
                await writer.drain()
        writer.close()


async def main() -> None:
    """Serve."""
    sites: list[Site] = []
    sites += [Site(sites, number) for number in range(ORIGINS)]
    for site in sites:
        await site.open()
    print(json.dumps([site.url for site in sites]), flush=True)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps([site.journal for site in sites]), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
