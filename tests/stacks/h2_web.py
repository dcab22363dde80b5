"""Sites over HTTP/2, or 1.1 for a client that asks for that, in this process; opened as others are."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

from twisted.internet import ssl, task
from twisted.web import resource, server

from tests.crawling.web import Site


class Pages(resource.Resource):
    isLeaf = True  # noqa: N815 - of the base class

    def __init__(self, answers):
        super().__init__()
        self.answers = answers
        self.journal = []

    def render(self, request):
        target = request.uri.decode("latin-1")
        headers = {
            name.decode("latin-1").lower(): values[-1].decode("latin-1").lower()
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        headers["protocol"] = request.clientproto.decode()
        self.journal.append({"target": target, "headers": headers})
        steps = self.answers.get(target, self.answers["*"])[0]
        head, _, body = steps[0][1].encode("latin-1").partition(b"\r\n\r\n")
        first, *fields = head.split(b"\r\n")
        request.setResponseCode(int(first.split()[1]))
        for field in fields:
            request.setHeader(*field.split(b": ", 1))
        request.write(body)
        lines = [(line.encode(), times) for step, line, times, _ in steps[1:2] if step == "repeat"]
        writing = task.cooperate(request.write(line) for line, n in lines for _ in repeat(None, n))
        request.notifyFinish().addErrback(lambda _: writing.stop())
        writing.whenDone().addCallbacks(lambda _: request.finish(), lambda _: None)
        return server.NOT_DONE_YET


class H2Site(Site):
    """One origin, and what reached it."""

    journal = None


class H2Web:
    def __init__(self, certificate):
        own = ssl.PrivateCertificate.loadPEM(Path(certificate).read_text())
        self.options = ssl.CertificateOptions(
            privateKey=own.privateKey.original,
            certificate=own.original,
            acceptableProtocols=[b"h2", b"http/1.1"],
        )
        self.listening = []

    def site(self, robots, paths):
        from twisted.internet import reactor

        pages = Pages({**paths, "/robots.txt": [robots]})
        self.listening.append(reactor.listenSSL(0, server.Site(pages), self.options))
        site = H2Site(self, self.listening[-1].getHost().port, "127.0.0.1", "https")
        site.journal = pages.journal
        return site

    async def close(self):
        for each in self.listening:
            await each.stopListening()
