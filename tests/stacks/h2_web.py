"""The tests' side of h2_server.py: opens sites over HTTP/2, as tests/crawling/web.py does others."""

from __future__ import annotations

from pathlib import Path

from tests.crawling.web import Site
from tests.server_process import ServerProcess

SERVER = Path(__file__).with_name("h2_server.py")


class H2Site(Site):
    """One origin, in a process of its own."""

    def __init__(self, answers, certificate):
        self.process = ServerProcess(SERVER, answers, certificate)
        super().__init__(self, self.process.port, "127.0.0.1", "https")

    @property
    def journal(self):
        return self.process.journal()


class H2Web:
    """Opens sites as tests/crawling/web.py does."""

    def __init__(self, certificate):
        self.certificate = certificate
        self.sites = []

    def site(self, robots, paths):
        answers = {path: _parsed(steps[0]) for path, steps in paths.items()}
        self.sites.append(H2Site({**answers, "/robots.txt": _parsed(robots)}, self.certificate))
        return self.sites[-1]

    def close(self):
        for site in self.sites:
            site.process.close()


def _parsed(steps):
    """Return status, headers, body and what repeats after it, of the steps of an answer."""
    head, _, body = steps[0][1].partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = [line.split(": ", 1) for line in lines]
    repeated = next((step[1:3] for step in steps if step[0] == "repeat"), ["", 0])
    return [int(first.split()[1]), headers, body, repeated]
