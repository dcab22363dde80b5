"""What stands between crawls and sites: a proxy and APIs, on loopback.

Each fetches for real, and keeps a journal of what was asked of it.
"""

from __future__ import annotations

import base64
import http.client
import json
import threading
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urljoin, urlsplit

from tests.waiting import PATIENCE

_HOP_BY_HOP = {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "host", "te"}
_MAX_HOPS = 10
_WRAPPING = (
    '<html><head><meta name="color-scheme" content="light dark"></head><body>'
    '<pre style="word-wrap: break-word; white-space: pre-wrap;">{}</pre></body></html>'
)
"""What Chromium makes of a text."""


def fetch(url, headers):
    """Return status, headers and body of ``url``, asked for directly; redirects are not followed."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=PATIENCE)
    target = parts.path or "/"
    if parts.query:
        target += "?" + parts.query
    connection.putrequest("GET", target, skip_accept_encoding=True)
    for name, value in headers.items():
        if name.lower() not in {*_HOP_BY_HOP, "proxy-authorization", "content-length"}:
            connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.getheaders(), body


def fetch_on(url, headers):
    """The same, with redirects followed: URL, status, headers and body of where they end."""
    for _ in range(_MAX_HOPS):
        status, answered, body = fetch(url, headers)
        location = dict(answered).get("Location")
        if status not in {301, 302, 303, 307, 308} or location is None:
            break
        url = urljoin(url, location)
    return url, status, answered, body


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    """The default of five turns away who comes while it is busy."""


class Endpoint:
    """A server in threads of this process, and what was asked of it."""

    def __init__(self, refusal=None):
        self.refusal = refusal
        self.journal = []
        """The URLs that were asked for."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    endpoint.answer(self, body)
                except ConnectionError:
                    self.close_connection = True

            do_GET = do_POST = do_CONNECT = handle_any  # noqa: N815 - of the base class

            def log_message(self, *_):
                pass

        self.server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, handler, body):
        raise NotImplementedError

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def robots_requests(self):
        return [url for url in self.journal if url.endswith("/robots.txt")]


def send(handler, status, headers, body):
    handler.send_response(status)
    for name, value in headers:
        if name.lower() not in {*_HOP_BY_HOP, "content-length", "date", "server"}:
            handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class Proxy(Endpoint):
    """A forward proxy that relays, or refuses everything with the status ``refusal``."""

    def answer(self, handler, body):
        self.journal.append(handler.path)
        marks = [("Via", "1.1 squid.example (squid/6.6)"), ("Content-Type", "text/html")]
        if self.refusal == 407:
            auth = ("Proxy-Authenticate", 'Basic realm="proxy"')
            send(handler, 407, [*marks, auth], b"<html>Proxy Authentication Required</html>")
        elif self.refusal:
            error = ("X-Squid-Error", "ERR_ACCESS_DENIED 0")
            send(handler, self.refusal, [*marks, error], b"<html>the proxy's own page</html>")
        else:
            send(handler, *fetch(handler.path, dict(handler.headers)))


class ZyteAPI(Endpoint):
    """Speaks as much of Zyte API's ``/v1/extract`` as a crawl needs; each answer is billed."""

    def answer(self, handler, body):
        query = json.loads(body)
        self.journal.append(query["url"])
        if self.refusal:
            problem = {
                "type": "/auth/key-not-found",
                "title": "Authentication Key Not Found",
                "status": self.refusal,
                "detail": "The authentication key is not valid or can't be matched.",
            }
            self._send(handler, self.refusal, problem)
            return
        custom = {each["name"]: each["value"] for each in query.get("customHttpRequestHeaders", ())}
        headers = {"User-Agent": "Mozilla/5.0 (the API's own)", **custom}
        if query.get("browserHtml") or query.get("followRedirect", True):
            url, status, answered, text = fetch_on(query["url"], headers)
        else:
            url = query["url"]
            status, answered, text = fetch(url, headers)
        reply = {"url": url, "statusCode": status}
        if query.get("httpResponseBody"):
            reply["httpResponseBody"] = base64.b64encode(text).decode()
        if query.get("httpResponseHeaders"):
            reply["httpResponseHeaders"] = [{"name": n, "value": v} for n, v in answered]
        if query.get("browserHtml"):
            reply["browserHtml"] = rendered(answered, text)
        self._send(handler, 200, reply)

    @staticmethod
    def _send(handler, status, reply):
        kind = "application/json" if status == 200 else "application/problem+json"
        send(handler, status, [("Content-Type", kind)], json.dumps(reply).encode())


class UrlAPI(Endpoint):
    """An API that is given the URL of a page as ``?url=``, and answers as the page does."""

    @property
    def url(self):
        # Another host than that of the sites.
        return f"http://localhost:{self.server.server_port}"

    def answer(self, handler, body):
        asked = dict(parse_qsl(urlsplit(handler.path).query)).get("url")
        if asked is None:  # its own robots.txt
            self.journal.append(self.url + handler.path)
            send(handler, 200, [], b"User-agent: *\nDisallow: /\n")
            return
        self.journal.append(asked)
        headers = {"User-Agent": handler.headers.get("User-Agent", "")}
        _, status, answered, text = fetch_on(asked, headers)
        send(handler, status, answered, text)


def rendered(headers, text):
    """Return what a browser has in place of an answer."""
    text = text.decode("utf-8", "replace")
    kind = {name.lower(): value for name, value in headers}.get("content-type", "text/html")
    return _WRAPPING.format(escape(text, quote=False)) if kind.startswith("text/plain") else text
