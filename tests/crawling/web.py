"""The tests' side of server.py: opens sites, tells their stories, reads what reached them."""

import gzip
import json
import zlib
from pathlib import Path

from tests.server_process import Server

PAGE = "<html><title>a page</title>words</html>"
RULES = "User-agent: *\nDisallow: /private\n"
"""Of sites whose story is not about rules."""
HANGS = [["hold"]]
"""An answer that never comes, unless its site is released."""


def answer(status=200, body="", *, headers=None, length=True, reason="Reason"):
    """The steps of a whole, well-formed answer."""
    lines = [f"HTTP/1.1 {status} {reason}"]
    if isinstance(body, bytes):
        body = body.decode("latin-1")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    if length and status not in {204, 304}:
        lines.append(f"Content-Length: {len(body)}")
    return [["send", "\r\n".join(lines) + "\r\n\r\n" + body]]


def robots(body="", **kwargs):
    return answer(200, body, headers={"Content-Type": "text/plain"}, **kwargs)


def page(tag="", **headers):
    """The answers of a page with this in its head, and with ``Some_Header`` of its own."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    body = f"<html><head>{tag}</head><body>words</body></html>"
    return [answer(200, body, headers={"Content-Type": "text/html", **headers})]


def held(answer):
    """The same, when the site is released."""
    return [["hold"], *answer]


def redirect(location, status=301, body=""):
    return answer(status, body, headers={"Location": location})


def gzipped(body):
    return answer(200, gzip.compress(body.encode()), headers={"Content-Encoding": "gzip"})


def raw_deflate(body):
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


class Site:
    def __init__(self, web, port, host, scheme):
        self.web = web
        self.port = port
        self.host = host
        self.scheme = scheme

    def url(self, path="/"):
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    def release(self):
        """Let the answers go that are held, and hold none from now on."""
        self.web.tell({"release": self.port})

    def change(self, *robots_answers, paths=None):
        answers = dict(paths or {})
        if robots_answers:
            answers["/robots.txt"] = list(robots_answers)
        self.web.tell({"change": self.port, "answers": answers})

    @property
    def journal(self):
        return self.web.tell({"journal": self.port})

    @property
    def targets(self):
        """Targets of all requests but those of robots.txt, as they came."""
        return [entry["target"] for entry in self.journal if entry["target"] != "/robots.txt"]

    @property
    def robots_requests(self):
        return [entry for entry in self.journal if entry["target"].endswith("/robots.txt")]


class Web(Server):
    def __init__(self):
        super().__init__(Path(__file__).with_name("server.py"))

    def tell(self, command):
        return self.ask(json.dumps(command))

    def site(self, *robots_answers, paths=None, host="127.0.0.1", certificate=None):
        """Open a site; ``robots_answers`` are the answers to /robots.txt, one after another."""
        answers = {"*": [answer(200, PAGE, headers={"Content-Type": "text/html"})], **(paths or {})}
        if robots_answers:
            answers["/robots.txt"] = list(robots_answers)
        story = {"answers": answers, "host": host, "certificate": certificate}
        scheme = "https" if certificate else "http"
        return Site(self, self.tell({"open": story}), host, scheme)
