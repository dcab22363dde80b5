"""A site over HTTP/2 (or 1.1, for a client that asks for that), in a process of its own.

``python h2_server.py ANSWERS CERTIFICATE``: the answers by path (``*``: any other) as JSON, each of
them ``[status, [[name, value], ...], text, [what follows it, how often]]``. Prints its port, then its
journal for each line that it reads; ends with its input.
"""

from __future__ import annotations

import json
import sys
from itertools import repeat
from pathlib import Path

from OpenSSL import crypto
from twisted.internet import reactor, ssl, stdio, task
from twisted.protocols.basic import LineReceiver
from twisted.web import resource, server


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
        self.journal.append({"method": "GET", "target": target, "headers": headers})
        status, fields, body, (line, times) = self.answers.get(target, self.answers["*"])
        request.setResponseCode(status)
        for name, value in fields:
            request.setHeader(name, value)
        request.write(body.encode("latin-1"))
        writing = task.cooperate(map(request.write, repeat(line.encode("latin-1"), times)))
        request.notifyFinish().addErrback(lambda _: writing.stop())
        writing.whenDone().addCallbacks(lambda _: request.finish(), lambda _: None)
        return server.NOT_DONE_YET


class Tell(LineReceiver):
    delimiter = b"\n"

    def __init__(self, pages):
        self.pages = pages

    def lineReceived(self, line):
        self.sendLine(json.dumps(self.pages.journal).encode())

    def connectionLost(self, reason):
        reactor.stop()


def main():
    answers, certificate = sys.argv[1:]
    pem = Path(certificate).read_bytes()
    options = ssl.CertificateOptions(
        privateKey=crypto.load_privatekey(crypto.FILETYPE_PEM, pem),
        certificate=crypto.load_certificate(crypto.FILETYPE_PEM, pem),
        acceptableProtocols=[b"h2", b"http/1.1"],
    )
    pages = Pages(json.loads(answers))
    port = reactor.listenSSL(0, server.Site(pages), options, interface="127.0.0.1")
    print(port.getHost().port, flush=True)
    stdio.StandardIO(Tell(pages))
    reactor.run()


if __name__ == "__main__":
    main()
