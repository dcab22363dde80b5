"""The ways in which a fetch of robots.txt can go, as data: test_faults.py runs them all.

Each site's robots.txt, where it is read, is RULES: it disallows /private. What the documents ask
then shows on the wire: with the rules only /public is fetched, with no restrictions /private too,
and nothing at all while robots.txt is unreachable.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from functools import cache

from tests.crawling.web import HANGS, answer, gzipped, raw_deflate, redirect, robots

RULES_TEXT = "User-agent: *\nDisallow: /private\n"
RULES, ALL, NONE = "rules", "all", "none"
ON_THE_WIRE = {RULES: ["/public"], ALL: ["/private", "/public"], NONE: []}
BOMB_SIZE = 2**30


@dataclass(frozen=True)
class Fault:
    name: str
    asks: str
    source: str
    robots: list = field(default_factory=list)
    paths: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    attributes: dict = field(default_factory=dict)
    meta: dict = field(default_factory=dict)
    requests: int | None = 1
    """Requests of /robots.txt itself that reach the site; None where that isn't the point."""

    @property
    def is_short_of_time(self):
        """Whether on a machine that is busy its time may be over before the site was asked."""
        limits = {"REP_TIMEOUT", "DOWNLOAD_TIMEOUT", "download_timeout"}
        return bool(limits & {*self.settings, *self.meta})


@cache
def bomb():
    """The rules and then a GiB of line ends, compressed; whoever comes to the end misses a checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    rules = packer.compress(RULES_TEXT.encode()) + packer.flush(zlib.Z_FULL_FLUSH)
    # After such a flush, the same is compressed to the same.
    block = packer.compress(b"\n" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return rules + block * (BOMB_SIZE // 2**20)


def raw(text, *steps):
    return [["send", text], *steps]


def chain(hops):
    """A robots.txt behind as many redirects of the same site."""
    paths = {f"/r{i}": [redirect(f"/r{i + 1}")] for i in range(1, hops)}
    paths[f"/r{hops}"] = [robots(RULES_TEXT)]
    return redirect("/r1") if hops else robots(RULES_TEXT), paths


HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
CHUNK = f"{len(RULES_TEXT):x}\r\n{RULES_TEXT}\r\n"
SHORT_TIME = {"REP_TIMEOUT": 1.0}
PACKED = gzip.compress(RULES_TEXT.encode() * 50)


def statuses():
    for status in (200, 201, 203, 206, 226, 299):
        yield Fault(f"status {status}", RULES, "F-1", [answer(status, RULES_TEXT)])
    yield Fault("status 204", ALL, "F-1", [answer(204)])
    yield Fault("status 200, empty", ALL, "F-1", [answer(200)])
    for status in (300, 304, 305, 306, 399):
        yield Fault(f"status {status}, no Location", ALL, "F-2", [answer(status)])
    for status in (400, 401, 403, 404, 405, 410, 418, 428, 431, 451, 499):
        yield Fault(f"status {status}", ALL, "F-5", [answer(status, RULES_TEXT)])
    for status in (429, 500, 501, 502, 503, 504, 520, 599):
        yield Fault(f"status {status}", NONE, "F-6", [answer(status, RULES_TEXT)])
    for status in (600, 999):
        yield Fault(f"status {status}", NONE, "F-10", [answer(status, RULES_TEXT)])
    page = "<html><title>Page not found</title></html>"
    yield Fault("status 500, says not found", ALL, "F-9", [answer(500, page)])
    yield Fault(
        "status 500, says not found, REP_SOFT_404 off",
        NONE,
        "F-9",
        [answer(500, page)],
        settings={"REP_SOFT_404": False},
    )
    yield Fault(
        "status 100, then 200",
        RULES,
        "F-1",
        [
            raw(
                "HTTP/1.1 100 Continue\r\n\r\n"
                + HEAD
                + f"Content-Length: {len(RULES_TEXT)}\r\n\r\n"
                + RULES_TEXT
            )
        ],
    )


def redirects():
    for hops in range(22):
        first, paths = chain(hops)
        asks = RULES if hops <= 5 else ALL
        yield Fault(f"{hops} redirects", asks, "F-2", [first], paths)
    for status in (300, 301, 302, 303, 307, 308):
        paths = {"/r": [robots(RULES_TEXT)]}
        yield Fault(f"redirect by {status}", RULES, "F-2", [redirect("/r", status)], paths)
    yield Fault("redirect to itself", ALL, "F-2", [redirect("/robots.txt")], requests=6)
    yield Fault(
        "redirect loop of two",
        ALL,
        "F-2",
        [redirect("/r")],
        {"/r": [redirect("/robots.txt")]},
        requests=3,
    )
    for name, location in {
        "missing": None,
        "empty": "",
        "broken": "http://[::1/robots.txt",
        "of ftp": "ftp://127.0.0.1/robots.txt",
        "of file": "file:///etc/hosts",
        "of javascript": "javascript:alert(1)",
        "of data": "data:text/plain,User-agent: *",
        "with a bad port": "http://127.0.0.1:99999/robots.txt",
    }.items():
        headers = {} if location is None else {"Location": location}
        yield Fault(f"Location {name}", ALL, "F-2", [answer(302, "", headers=headers)])
    for status, asks in ((404, ALL), (503, NONE)):
        yield Fault(
            f"redirect to a {status}", asks, "F-2", [redirect("/r")], {"/r": [answer(status)]}
        )
    yield Fault("redirect to a hang", NONE, "F-10", [redirect("/r")], {"/r": [HANGS]}, SHORT_TIME)
    refresh = f'<html><meta http-equiv="refresh" content="0;url=/r">\n{RULES_TEXT}</html>'
    page = answer(200, refresh, headers={"Content-Type": "text/html"})
    yield Fault("meta refresh is not followed", RULES, "F-4", [page], {"/r": [robots("")]})
    html = answer(200, "<html><h1>Welcome</h1></html>", headers={"Content-Type": "text/html"})
    yield Fault("HTML instead of robots.txt", ALL, "F-1", [html])


def bodies():
    declared = f"Content-Length: {len(RULES_TEXT)}\r\n\r\n"
    yield Fault("closed before an answer", NONE, "F-10", [[["close"]]], requests=None)
    yield Fault("reset before an answer", NONE, "F-10", [[["reset"]]], requests=None)
    yield Fault(
        "reset within the head", NONE, "F-10", [raw(HEAD, ["wait", 0.1], ["reset"])], requests=None
    )
    yield Fault(
        "reset within the body",
        NONE,
        "F-10",
        [raw(HEAD + "Content-Length: 999\r\n\r\n" + RULES_TEXT, ["wait", 0.1], ["reset"])],
    )
    yield Fault(
        "body shorter than Content-Length",
        NONE,
        "F-10",
        [raw(HEAD + "Content-Length: 999\r\n\r\n" + RULES_TEXT, ["close"])],
    )
    yield Fault(
        "the same, DOWNLOAD_FAIL_ON_DATALOSS off",
        NONE,
        "F-10",
        [raw(HEAD + "Content-Length: 999\r\n\r\n" + RULES_TEXT, ["close"])],
        settings={"DOWNLOAD_FAIL_ON_DATALOSS": False},
    )
    yield Fault(
        "body longer than Content-Length",
        RULES,
        "F-1",
        [raw(HEAD + declared + RULES_TEXT + "Disallow: /public\n", ["close"])],
    )
    yield Fault(
        "Content-Length that is no number",
        NONE,
        "F-10",
        [raw(HEAD + "Content-Length: many\r\n\r\n" + RULES_TEXT, ["close"])],
    )
    yield Fault(
        "body ended by closing",
        RULES,
        "F-1",
        [raw(HEAD + "Connection: close\r\n\r\n" + RULES_TEXT, ["close"])],
    )
    yield Fault(
        "HTTP/1.0", RULES, "F-1", [raw(HEAD.replace("1.1", "1.0") + "\r\n" + RULES_TEXT, ["close"])]
    )
    yield Fault("chunks", RULES, "F-1", [raw(CHUNKED + CHUNK + "0\r\n\r\n")])
    yield Fault(
        "chunk with a bad length",
        NONE,
        "F-10",
        [raw(CHUNKED + CHUNK + "xyz\r\nabc\r\n", ["close"])],
    )
    yield Fault(
        "chunks cut within one", NONE, "F-10", [raw(CHUNKED + CHUNK + "fff\r\nabc", ["close"])]
    )
    yield Fault("chunks without the last", NONE, "F-10", [raw(CHUNKED + CHUNK, ["close"])])
    yield Fault("no HTTP at all", NONE, "F-10", [raw("SSH-2.0-OpenSSH_9.2\r\n", ["close"])])
    yield Fault("bytes at random", NONE, "F-10", [raw("\x00\xff\x13\x37" * 50, ["close"])])


def codings():
    yield Fault("gzip", RULES, "F-1", [gzipped(RULES_TEXT)])
    yield Fault(
        "x-gzip, in capitals",
        RULES,
        "F-1",
        [answer(200, gzip.compress(RULES_TEXT.encode()), headers={"Content-Encoding": "X-GZIP"})],
    )
    yield Fault(
        "deflate",
        RULES,
        "F-1",
        [answer(200, zlib.compress(RULES_TEXT.encode()), headers={"Content-Encoding": "deflate"})],
    )
    yield Fault(
        "raw deflate",
        RULES,
        "F-1",
        [
            answer(
                200,
                raw_deflate(RULES_TEXT.encode()),
                headers={"Content-Encoding": "deflate"},
            )
        ],
    )
    yield Fault(
        "gzip twice",
        RULES,
        "F-1",
        [
            answer(
                200,
                gzip.compress(gzip.compress(RULES_TEXT.encode())),
                headers={"Content-Encoding": "gzip, gzip"},
            )
        ],
    )
    yield Fault(
        "gzip in two members",
        RULES,
        "F-1",
        [
            answer(
                200,
                gzip.compress(b"User-agent: *\n") + gzip.compress(b"Disallow: /private\n"),
                headers={"Content-Encoding": "gzip"},
            )
        ],
    )
    yield Fault(
        "gzip that is none",
        NONE,
        "F-10",
        [answer(200, RULES_TEXT, headers={"Content-Encoding": "gzip"})],
    )
    yield Fault(
        "gzip with a wrong checksum",
        NONE,
        "F-10",
        [answer(200, PACKED[:-8] + b"\0" * 8, headers={"Content-Encoding": "gzip"})],
    )
    yield Fault(
        "gzip that is cut",
        NONE,
        "F-10",
        [answer(200, PACKED[:-20], headers={"Content-Encoding": "gzip"})],
    )
    yield Fault(
        "gzip of nothing", ALL, "F-1", [answer(200, b"", headers={"Content-Encoding": "gzip"})]
    )
    yield Fault(
        "a coding that nobody knows",
        NONE,
        "F-10",
        [answer(200, RULES_TEXT, headers={"Content-Encoding": "rot13"})],
    )
    yield Fault(
        "a charset for a coding",
        RULES,
        "F-1",
        [answer(200, RULES_TEXT, headers={"Content-Encoding": "utf-8"})],
    )
    yield Fault(
        "a 404 with broken gzip",
        ALL,
        "F-5",
        [answer(404, "oops", headers={"Content-Encoding": "gzip"})],
    )
    yield Fault(
        "COMPRESSION_ENABLED off, gzip all the same",
        RULES,
        "F-1",
        [gzipped(RULES_TEXT)],
        settings={"COMPRESSION_ENABLED": False},
    )


def sizes():
    filler = "# filler\n"
    full = RULES_TEXT + filler * 60_000
    beyond = (filler * 60_000)[:512_000] + "\n" + RULES_TEXT
    at_limit = "#" * (512_000 - len(RULES_TEXT) - 1) + "\n" + RULES_TEXT
    cut_line = "User-agent: *\nDisallow: /p"
    cut_line = "#" * (512_000 - len(cut_line) - 1) + "\n" + cut_line + "laces\n"
    yield Fault("more than 500 KiB", RULES, "F-13", [robots(full)])
    yield Fault("rules within the last of 500 KiB", RULES, "F-13", [robots(at_limit)])
    yield Fault("rules after 500 KiB", ALL, "F-13", [robots(beyond)])
    yield Fault("rule cut by the end of 500 KiB", ALL, "F-13", [robots(cut_line)])
    yield Fault("more than 500 KiB, compressed", RULES, "F-13", [gzipped(full)])
    yield Fault("rules after 500 KiB, compressed", ALL, "F-13", [gzipped(beyond)])
    yield Fault(
        "DOWNLOAD_MAXSIZE of 10 bytes",
        RULES,
        "F-13",
        [robots(RULES_TEXT)],
        settings={"DOWNLOAD_MAXSIZE": 10},
        paths={"*": [answer(200, "short")]},
    )
    yield Fault(
        "Content-Length of a TiB",
        RULES,
        "F-13",
        [
            raw(
                HEAD + f"Content-Length: {2**40}\r\n\r\n" + RULES_TEXT,
                ["repeat", filler * 1000, 1000, 0],
            )
        ],
    )
    yield Fault(
        "endless and fast",
        RULES,
        "F-13",
        [raw(HEAD + "\r\n" + RULES_TEXT, ["repeat", filler * 1000, 10_000, 0])],
    )
    yield Fault(
        "endless and fast, in chunks",
        RULES,
        "F-13",
        [
            raw(
                CHUNKED + CHUNK,
                ["repeat", f"{len(filler) * 1000:x}\r\n" + filler * 1000 + "\r\n", 10_000, 0],
            )
        ],
    )
    yield Fault(
        "endless and slow",
        NONE,
        "F-10",
        [raw(HEAD + "\r\n" + RULES_TEXT, ["repeat", filler, 1000, 0.1])],
        settings=SHORT_TIME,
    )
    yield Fault(
        "a byte at a time", NONE, "F-10", [[["repeat", "H", 1000, 0.1]]], settings=SHORT_TIME
    )
    yield Fault(
        "endless head",
        NONE,
        "F-10",
        [raw(HEAD, ["repeat", "X-More: header\r\n", 10_000_000, 0.01])],
        settings=SHORT_TIME,
    )
    yield Fault("hangs", NONE, "F-10", [HANGS], settings=SHORT_TIME)
    yield Fault(
        "hangs after the head",
        NONE,
        "F-10",
        [raw(HEAD + "Content-Length: 99\r\n\r\n", ["hold"])],
        settings=SHORT_TIME,
    )
    yield Fault(
        "hangs, download_timeout of the page",
        NONE,
        "F-10",
        [HANGS],
        meta={"download_timeout": 0.5},
    )
    yield Fault(
        "hangs, DOWNLOAD_TIMEOUT",
        NONE,
        "F-10",
        [HANGS],
        settings={"DOWNLOAD_TIMEOUT": 0.5},
    )
    yield Fault(
        "gzip bomb of 1 GiB",
        RULES,
        "F-13",
        [answer(200, bomb(), headers={"Content-Encoding": "gzip"})],
    )


def middlewares():
    one = [robots(RULES_TEXT)]
    yield Fault(
        "offsite",
        RULES,
        "DESIGN 2",
        one,
        attributes={"allowed_domains": ["127.0.0.1.example"]},
        meta={"allow_offsite": True},
    )
    yield Fault(
        "handle_httpstatus_list of the spider",
        ALL,
        "DESIGN 2",
        [redirect("/r")],
        {"/r": [answer(404)]},
        attributes={"handle_httpstatus_list": [301, 404]},
    )
    yield Fault(
        "REDIRECT_MAX_TIMES of 1",
        RULES,
        "DESIGN 2",
        [redirect("/r1")],
        {"/r1": [redirect("/r2")], "/r2": one},
        {"REDIRECT_MAX_TIMES": 1},
    )
    yield Fault(
        "REDIRECT_ENABLED off",
        RULES,
        "DESIGN 2",
        [redirect("/r1")],
        {"/r1": one},
        {"REDIRECT_ENABLED": False},
    )
    yield Fault(
        "RETRY_TIMES of 5 at a 503", NONE, "DESIGN 2", [answer(503)], settings={"RETRY_TIMES": 5}
    )
    yield Fault(
        "RETRY_TIMES of 5 at a reset",
        NONE,
        "DESIGN 2",
        [raw(HEAD + "Content-Length: 9\r\n\r\n", ["close"])],
        settings={"RETRY_TIMES": 5},
    )
    yield Fault(
        "DOWNLOAD_DELAY of 60 s and three hops",
        RULES,
        "DESIGN 2",
        [redirect("/r1")],
        {"/r1": [redirect("/r2")], "/r2": [redirect("/r3")], "/r3": one},
        {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0}}, "DOWNLOAD_DELAY": 60},
    )
    yield Fault(
        "AutoThrottle",
        RULES,
        "DESIGN 2",
        one,
        settings={"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1},
    )
    yield Fault(
        "conditional headers by default",
        RULES,
        "S-8",
        one,
        settings={"DEFAULT_REQUEST_HEADERS": {"If-None-Match": "x", "Range": "bytes=0-1"}},
    )


FAULTS = [
    *statuses(),
    *redirects(),
    *bodies(),
    *codings(),
    *sizes(),
    *middlewares(),
]
