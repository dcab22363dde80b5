"""The demonstration web: one origin per story, on loopback, in one process.

Run alone it serves until its standard input ends. It prints the URL of its start page when it
is ready, and what reached it, as JSON, when it ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from contextlib import suppress
from html import escape
from http import HTTPStatus

from stories import STORIES, Answer, Story

LATER = 1.5
"""Seconds before each of the two pages on the way to the later links.

The stories' robots.txt change when the second is asked for. Its links come so much later that
what the crawler knew until then has expired, however busy the machine is.
"""
_IN_A_WHILE = "/in-a-while"
_LATER = "/later"


class Site:
    """One origin: answers as its story says, and counts what reaches it."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.port = 0
        self.later = False
        self.asked: Counter[str] = Counter()

    async def open(self) -> asyncio.Server:
        """Begin to serve, on a port of the system's choice."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def url(self, path: str) -> str:
        """Return the URL of one of its pages."""
        return f"http://127.0.0.1:{self.port}{path}"

    @property
    def journal(self) -> dict[str, object]:
        """What reached the site."""
        pages = [page for page in self.asked if not page.startswith("/robots")]
        return {
            "story": self.story.name,
            "shows": self.story.shows,
            "robots": self.asked["/robots.txt"],
            "pages": sum(self.asked[page] for page in pages),
            "disallowed": [page for page in pages if page not in self.story.may_be_fetched],
        }

    def answer(self, target: str) -> Answer:
        """Return the answer to the next request for ``target``."""
        self.asked[target] += 1
        if target == "/robots.txt":
            return (self.later and self.story.robots_later) or self.story.robots
        if target in self.story.files:
            return self.story.files[target]
        pages = self.story.allowed + self.story.forbidden
        return page(self.story.name, [(self.url(other), other) for other in pages])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the web ends while an answer still hangs.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await self._send(self.answer(head.split(b" ", 2)[1].decode("latin-1")), writer)
        writer.close()

    async def _send(self, answer: Answer, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(answer.delay)
        headers = {name: value.format(port=self.port) for name, value in answer.headers.items()}
        if answer.endless:
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(len(answer.body))
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body)
        await writer.drain()
        while answer.endless:
            writer.write(answer.endless)
            await writer.drain()
            await asyncio.sleep(0)  # the other sites' turn


class FrontSite(Site):
    """The site that links to all the others: some links at once, some later."""

    def __init__(self, sites: list[Site]) -> None:
        super().__init__(Story("the start page", "links to all the others", Answer(status=404)))
        self.sites = sites

    @property
    def journal(self) -> dict[str, object]:
        """What reached the site; all of it may be fetched."""
        return {**super().journal, "disallowed": []}

    def answer(self, target: str) -> Answer:
        """Return one of the three pages; there is no robots.txt."""
        self.asked[target] += 1
        links = []
        if target == "/":
            # First, as Scrapy asks for the last link first: all others are asked for before it.
            links.append((self.url(_IN_A_WHILE), "more, in a while"))
            links += [(s.url(door), s.story.name) for s in self.sites for door in s.story.doors]
            return page("The demonstration web", links)
        if target == _IN_A_WHILE:
            return page("Wait", [(self.url(_LATER), "still later")], delay=LATER)
        if target == _LATER:
            for site in self.sites:
                site.later = True
                later = site.story.later_allowed + site.story.later_forbidden
                links += [(site.url(path), site.story.name) for path in later]
            return page("Later", links, delay=LATER)
        return Answer(b"no such page", 404)


def page(title: str, links: list[tuple[str, str]], delay: float = 0.0) -> Answer:
    """Return a page of links."""
    items = "".join(f'<li><a href="{escape(url)}">{escape(words)}</a>\n' for url, words in links)
    body = f"<!doctype html><title>{escape(title)}</title>\n<h1>{escape(title)}</h1>\n<ul>\n{items}"
    return Answer(body.encode(), headers={"Content-Type": "text/html; charset=utf-8"}, delay=delay)


async def main() -> None:
    """Serve until standard input ends, which it does with whoever started this process, too."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch() -> None:
        # Not sys.stdin: a lock of its would be held when the process ends by Ctrl-C.
        with suppress(OSError):
            while os.read(0, 1024):
                pass
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch, daemon=True).start()
    sites = [Site(story) for story in STORIES]
    sites.append(FrontSite(list(sites)))
    for site in sites:
        await site.open()
    print(sites[-1].url("/"), flush=True)
    await ended.wait()
    print(json.dumps([site.journal for site in sites]), flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(main())
