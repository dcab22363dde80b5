"""An origin that answers as its story says and notes what reaches it, and the page that links to all."""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from contextlib import suppress
from dataclasses import replace
from html import escape
from http import HTTPStatus
from time import monotonic
from typing import NamedTuple

from .story import WORDS, Answer, other

LATER = 1.5
"""Seconds before each of the two pages on the way to the later links.

The stories' robots.txt change when the second is asked for. Its links come so much later that
what the crawler knew until then has expired, however busy the machine is.
"""
PATIENCE = 3.0
"""Seconds that the second waits, at most, until the robots.txt that change were asked for."""
END = 64 * 2**20
"""Bytes after which an endless answer ends, as it must."""
_IN_A_WHILE = "/in-a-while"
_LATER = "/later"
_LINGER_0 = struct.pack("ii", 1, 0)


class Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    """By name, in lower case."""
    at: float
    """Seconds, by a clock that only goes on."""
    later: bool
    """Whether the story's robots.txt had changed by then."""


class Site:
    """One origin: answers as its story says, and notes what reaches it."""

    scheme = "http"
    host = "127.0.0.1"

    def __init__(self, story) -> None:
        self.story = story
        self.port = 0
        self.later = False
        self.log: list[Request] = []
        self.read_to_the_end = False
        """Whether somebody read all of an endless answer."""

    async def open(self) -> None:
        server = await asyncio.start_server(self.serve, self.host, 0)
        self.port = server.sockets[0].getsockname()[1]

    def change(self) -> None:
        """Answer otherwise from now on, if the story says so."""
        self.later = True

    def url(self, path: str) -> str:
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    @property
    def asked(self) -> list[str]:
        return [request.target for request in self.log]

    @property
    def robots(self) -> list[Request]:
        return [request for request in self.log if request.target == "/robots.txt"]

    @property
    def links(self) -> list[tuple[str, str]]:
        pages = self.story.allowed + self.story.forbidden
        return [(self.url(path), path) for path in pages]

    async def answer(self, target: str) -> Answer:
        """Return the answer to a request for ``target``."""
        if target == "/robots.txt":
            return (self.later and self.story.robots_later) or self.story.robots
        first = self.story.first.get(target)
        if first is not None and self.asked.count(target) == 1:
            return first
        return self.story.files.get(target) or page(self.story.name, self.links)

    def named(self, _: Request, __: asyncio.StreamWriter) -> Site:
        """Return the site that a request to this one's port is for."""
        return self

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the web ends while an answer still hangs.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            goes_on = True
            while goes_on:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                line, *lines = head.rstrip().split("\r\n")
                method, target, _ = line.split(" ", 2)
                fields = (each.partition(":") for each in lines)
                headers = {name.lower(): value.strip() for name, _, value in fields}
                request = Request(method, target, headers, monotonic(), later=False)
                goes_on = await self.named(request, writer).take(request, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def take(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Answer a request; return whether the connection goes on."""
        self.log.append(request._replace(later=self.later))
        answer = await self.answer(request.target)
        await asyncio.sleep(answer.delay)
        if answer.ends == "reset":
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_0)
            return False
        gzipped = answer.headers.get("Content-Encoding") == "gzip"
        if gzipped and "gzip" not in request.headers.get("accept-encoding", ""):
            answer = unpacked(answer)
        closes = answer.ends or answer.endless or request.headers.get("connection") == "close"
        writer.write(self._head(answer, closes=bool(closes)))
        if request.method != "HEAD":
            writer.write(answer.body)
            await writer.drain()
            await self._go_on(answer, writer)
        await writer.drain()
        return not closes

    def _head(self, answer: Answer, *, closes: bool) -> bytes:
        if not answer.status:
            return b""
        headers = {name: self.filled_in(value) for name, value in answer.headers.items()}
        if not answer.endless and "Transfer-Encoding" not in headers:
            headers.setdefault("Content-Length", str(len(answer.body)))
        if closes:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def _go_on(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        sent = 0
        while answer.endless and sent < END:
            await asyncio.sleep(answer.pause)  # if only for the other sites' turn
            writer.write(answer.endless)
            await writer.drain()
            sent += len(answer.endless)
        self.read_to_the_end |= sent >= END

    def filled_in(self, value: str) -> str:
        return value.format(port=self.port)


class FrontSite(Site):
    """The site that links to all the others: some links at once, some later."""

    seconds = LATER

    def __init__(self, sites) -> None:
        super().__init__(
            replace(
                other(Answer(status=404)), name="the start page", shows="links to all the others"
            )
        )
        self.sites = sites
        self.changing = [site for site in sites if site.story.changes]

    async def answer(self, target: str) -> Answer:
        """Return one of the three pages; there is no robots.txt."""
        later = [
            (site.url(path), site.story.name)
            for site in self.sites
            for path in site.story.later_allowed + site.story.later_forbidden
        ]
        if target == "/":
            # First, as Scrapy asks for the last link first: all others are asked for before it.
            links = [(self.url(_IN_A_WHILE), "more, in a while")] if later else []
            links += [(s.url(door), s.story.name) for s in self.sites for door in s.story.doors]
            return page("The demonstration web", links)
        if target == _IN_A_WHILE:
            return page("Wait", [(self.url(_LATER), "still later")], delay=self.seconds)
        if target == _LATER:
            await self._change()
            return page("Later", later, delay=self.seconds)
        return Answer(b"no such page", 404)

    async def _change(self) -> None:
        """Change robots.txt files, when the crawler has met them all."""
        end = monotonic() + PATIENCE
        asked = [site for site in self.changing if not site.story.opens_later]
        while monotonic() < end and not all(site.robots for site in asked):
            await asyncio.sleep(0.1)
        for site in self.changing:
            site.change()


def page(title: str, links: list[tuple[str, str]], delay: float = 0.0) -> Answer:
    items = "".join(f'<li><a href="{escape(url)}">{escape(words)}</a>\n' for url, words in links)
    body = f"<!doctype html><html><head><title>{escape(title)}</title></head>\n"
    body += f"<body><h1>{escape(title)}</h1>\n{WORDS}\n<ul>\n{items}</ul></body></html>\n"
    return Answer(body.encode(), headers={"Content-Type": "text/html; charset=utf-8"}, delay=delay)


def unpacked(answer: Answer) -> Answer:
    """Return the first MiB of a compressed answer as one that is not, for who takes no other."""
    headers = {name: v for name, v in answer.headers.items() if name != "Content-Encoding"}
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    return replace(answer, body=unpacker.decompress(answer.body, 2**20), headers=headers)
