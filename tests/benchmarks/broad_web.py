"""Thousands of origins in one process: every address of 127/8 on one port is another.

    python broad_web.py '{"stories": ["rules", "hang", ...], "seconds": 0.01, "certificate": null}'

Prints its port. The origin with number n has the story n modulo their number. A line on standard
input asks for the journal, which comes as a line of JSON; the process ends with its input.
"""

import asyncio
import json
import os
import ssl
import sys

PAGE = b"<html><title>a page</title>" + b"words " * 200 + b"</html>"
RULES = b"User-agent: *\nDisallow: /private\n"
WITH_RULES = {"rules", "far", "slow", "recovers"}
SHUT = {"hang", "failing"}
IDLE_SECONDS = 5.0
"""After which a connection is closed: a process may have some thousands."""


def host(number):
    return f"127.{1 + number // 62_500}.{number // 250 % 250}.{1 + number % 250}"


def number(host):
    _, a, b, c = map(int, host.split("."))
    return (a - 1) * 62_500 + b * 250 + c - 1


def answer(status, body=b"", headers=b""):
    return b"HTTP/1.1 %d X\r\n%bContent-Length: %d\r\n\r\n%b" % (status, headers, len(body), body)


class Origin:
    def __init__(self, story):
        self.story = story
        self.robots = self.pages = self.wrong = 0

    def answer(self, path):
        """Return the seconds to wait and what to say; None for nothing ever."""
        if path == "/robots.txt":
            self.robots += 1
            return self.robots_txt()
        self.pages += 1
        if self.story in SHUT or (self.story in WITH_RULES and path.startswith("/private")):
            self.wrong += 1
        return None, answer(200, PAGE, b"Content-Type: text/html\r\n")

    def robots_txt(self):
        story = self.story
        if story == "hang":
            return None
        if story == "far":
            return None, answer(200, RULES)
        if story == "missing":
            return 0, answer(404)
        if story == "failing" or (story == "recovers" and self.robots == 1):
            return 0, answer(503)
        return 0.3 if story == "slow" else 0, answer(200, RULES)


class Connection(asyncio.Protocol):
    def __init__(self, web):
        self.web = web
        self.data = b""
        self.timer = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        if self.timer is not None:
            self.timer.cancel()
        self.data += data
        if not self.data.endswith(b"\r\n\r\n"):
            return
        request, *lines = self.data.decode("latin-1").split("\r\n")
        self.data = b""
        name = next(line[6:] for line in lines if line.lower().startswith("host: "))
        found = self.web.origin(name.partition(":")[0]).answer(request.split(" ")[1])
        if found is None:
            return
        seconds, text = found
        seconds = self.web.seconds if seconds is None else seconds
        if seconds:
            asyncio.get_running_loop().call_later(seconds, self.write, text)
        else:
            self.write(text)

    def write(self, text):
        self.transport.write(text)
        self.timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.transport.close)

    def connection_lost(self, error):
        if self.timer is not None:
            self.timer.cancel()


class Web:
    def __init__(self, stories, seconds):
        self.stories = stories
        self.seconds = seconds
        self.origins = {}

    def origin(self, name):
        found = self.origins.get(name)
        if found is None:
            story = self.stories[number(name) % len(self.stories)]
            found = self.origins[name] = Origin(story)
        return found

    def journal(self):
        origins = self.origins.values()
        again = {"recovers", "failing", "hang"}
        return {
            "origins": len(origins),
            "asked": sum(o.robots > 0 for o in origins),
            "asked twice": sum(o.robots > 1 for o in origins if o.story not in again),
            "robots": sum(o.robots for o in origins),
            "pages": sum(o.pages for o in origins),
            "wrong": sum(o.wrong for o in origins),
        }


async def main():
    order = json.loads(sys.argv[1])
    web = Web(order["stories"], order["seconds"])
    context = None
    if order.get("certificate"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(order["certificate"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(web), "0.0.0.0", 0, backlog=4096, ssl=context
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(json.dumps(web.journal()), flush=True)
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(main())
