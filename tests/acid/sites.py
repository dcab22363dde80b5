"""The sites of the acid test, each on an address of loopback of its own, and what is wrong with what reached them."""

import asyncio
import itertools
import socket
from dataclasses import replace
from urllib.parse import unquote

from .server import Site


class AcidSite(Site):
    """An origin, and what is wrong with what reached it."""

    def __init__(self, story, host, token):
        super().__init__(story)
        self.host = host
        self.tokens = {b"DemoBot": token.encode(), b"HalfBot": token[:-1].encode()}
        self.context = None
        self.neighbours = []
        """Those on the same port."""
        self.besides = []
        for where, beside in story.beside.items():
            name = "localhost" if where == "localhost" else host
            site = AcidSite(replace(beside, name=story.name), name, token)
            site.where = where
            site.scheme = "https" if where == "https" else "http"
            self.besides.append(site)
            if where != "port":
                self.neighbours.append(site)

    @property
    def all(self):
        return [self, *self.besides]

    async def open(self, context):
        """Begin to serve, with TLS where a connection begins with it."""
        self.context = context
        self.listener = socket.socket()
        self.listener.bind((self.host, 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        if not self.story.opens_later:
            self._listen()
        for site in self.besides:
            if site in self.neighbours:
                site.port = self.port
            else:
                await site.open(context)

    def change(self):
        super().change()
        if self.story.opens_later:
            self._listen()

    def _listen(self):
        self.listener.listen(512)
        self.accepting = asyncio.create_task(self._accept())

    async def _accept(self):
        connections = set()
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(self.listener)
            task = asyncio.create_task(self._connected(connection))
            connections.add(task)
            task.add_done_callback(connections.discard)

    async def _connected(self, connection):
        loop = asyncio.get_running_loop()
        begun = asyncio.Event()
        loop.add_reader(connection, begun.set)
        await begun.wait()
        loop.remove_reader(connection)
        try:
            is_tls = connection.recv(1, socket.MSG_PEEK) == b"\x16"
            protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader(), self.serve)
            await loop.connect_accepted_socket(
                lambda: protocol, connection, ssl=self.context if is_tls else None
            )
        except OSError:  # it has left, or does not trust the certificate
            connection.close()

    def named(self, request, writer):
        scheme = "http" if writer.get_extra_info("sslcontext") is None else "https"
        host = request.headers.get("host", "").partition(":")[0]
        for site in self.neighbours:
            if (site.scheme, site.host) == (scheme, host):
                return site
        return self

    @property
    def links(self):
        return [(link, link) for link in self.story.links] or super().links

    async def answer(self, target):
        answer = await super().answer(target)
        body = answer.body
        if target == "/robots.txt":
            for name, token in self.tokens.items():
                body = body.replace(name, token)
        return replace(answer, body=body)

    def filled_in(self, value):
        beside = self.besides[0].url("") if self.besides else ""
        return value.format(port=self.port, beside=beside)

    @property
    def faults(self):
        """What it was asked for and should not have been, or the other way round."""
        return list(self._faults()) + [
            f"{site.where}: {fault}" for site in self.besides for fault in site.faults
        ]

    def _faults(self):
        story, robots = self.story, self.robots
        pages = [request for request in self.log if not request.target.startswith("/robots")]
        if story.doors and not self.log:
            yield "nothing was requested"
        elif pages and not robots:
            yield "robots.txt was not requested"
        elif pages and story.robots_later and all(request.later for request in robots):
            yield "robots.txt was not requested before it changed"
        yield from self._wrong_pages(pages)
        yield from (f"{path} is no robots.txt" for path in story.not_robots if path in self.asked)
        if story.once and len(robots) > 1:
            yield f"robots.txt was requested {len(robots)} times"
        if self.read_to_the_end:
            yield "64 MiB of robots.txt were read"
        yield from self._namelessness(robots)
        yield from self._haste(pages, robots)

    def _wrong_pages(self, pages):
        story, sent = self.story, set()
        for request in pages:
            path = unquote(request.target)
            sent.add(path)
            if path in story.later_forbidden or (path in story.forbidden and not request.later):
                yield f"{path} is disallowed"
        # What comes before the change may, with some crawlers, come after it.
        required = story.later_allowed or story.allowed
        yield from (
            f"{path} is allowed, and was not requested" for path in required if path not in sent
        )

    def _namelessness(self, robots):
        token = self.tokens[b"DemoBot"].decode().lower()
        for request in robots if self.story.names_itself else ():
            agent = request.headers.get("user-agent", "")
            if token not in agent.lower():
                yield f"robots.txt was requested by {agent[:60] or 'nobody'}"

    def _haste(self, pages, robots):
        story = self.story
        for what, requests, gap in (
            ("robots.txt", robots, story.robots_gap),
            ("pages", pages, story.gap),
        ):
            gaps = [after.at - before.at for before, after in itertools.pairwise(requests)]
            # Half: it varies with what each request is on its way.
            if min(gaps, default=gap) < gap / 2:
                yield f"{what} {min(gaps):.1f} s apart, not {gap}"
        waited = [after.at - before.at for before, after in itertools.pairwise(pages[:2])]
        # The first answer has been on its way for a part of it.
        if min(waited, default=story.pause) < story.pause * 0.9:
            yield f"the host was asked again after {min(waited):.1f} s, not {story.pause}"
