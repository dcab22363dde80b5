"""The ways in which a fetch of robots.txt can go, as data: test_faults.py runs them all.

Each site's robots.txt, where it is read, is RULES: it disallows /private. What the documents ask
then shows on the wire: with the rules only /public is fetched, with no restrictions /private too,
and nothing at all while robots.txt is unreachable.
"""

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
        return bool({"REP_TIMEOUT", "DOWNLOAD_TIMEOUT"} & {*self.settings})


@cache
def bomb():
    """The rules and then a GiB of line ends, compressed; whoever comes to the end misses a checksum."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    rules = packer.compress(RULES_TEXT.encode()) + packer.flush(zlib.Z_FULL_FLUSH)
    # After such a flush, the same is compressed to the same.
    block = packer.compress(b"\n" * 2**20) + packer.flush(zlib.Z_FULL_FLUSH)
    return rules + block * (BOMB_SIZE // 2**20)


def faults(asks, source, answers, **more):
    """A fault for each name and answer, where the answers differ in nothing else."""
    for name, answered in answers.items():
        yield Fault(name, asks, source, [answered], **more)


def raw(text, *steps):
    return [["send", text], *steps]


def chain(hops):
    """A robots.txt behind as many redirects of the same site."""
    paths = {f"/r{i}": [redirect(f"/r{i + 1}")] for i in range(1, hops)}
    paths[f"/r{hops}"] = [robots(RULES_TEXT)]
    return redirect("/r1") if hops else robots(RULES_TEXT), paths


HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
DECLARED = f"Content-Length: {len(RULES_TEXT)}\r\n\r\n"
TOO_SHORT = raw(f"{HEAD}Content-Length: 999\r\n\r\n{RULES_TEXT}", ["close"])
CHUNKED = HEAD + "Transfer-Encoding: chunked\r\n\r\n"
CHUNK = f"{len(RULES_TEXT):x}\r\n{RULES_TEXT}\r\n"
SHORT_TIME = {"REP_TIMEOUT": 1.0}
PACKED = gzip.compress(RULES_TEXT.encode() * 50)


def statuses():
    def of(*numbers):
        return {f"status {number}": answer(number, RULES_TEXT) for number in numbers}

    yield from faults(RULES, "F-1", of(200, 201, 203, 206, 226, 299))
    yield from faults(ALL, "F-1", {"status 204": answer(204), "status 200, empty": answer(200)})
    numbers = (300, 304, 305, 306, 399)
    yield from faults(ALL, "F-2", {f"status {n}, no Location": answer(n) for n in numbers})
    yield from faults(ALL, "F-5", of(400, 401, 403, 404, 405, 410, 418, 428, 431, 451, 499))
    yield from faults(NONE, "F-6", of(429, 500, 501, 502, 503, 504, 520, 599))
    yield from faults(NONE, "F-10", of(600, 999))
    page, name = "<html><title>Page not found</title></html>", "status 500, says not found"
    yield Fault(name, ALL, "F-9", [answer(500, page)])
    goes_on = raw(f"HTTP/1.1 100 Continue\r\n\r\n{HEAD}{DECLARED}{RULES_TEXT}")
    yield Fault("status 100, then 200", RULES, "F-1", [goes_on])


def redirects():
    for hops in range(22):
        first, paths = chain(hops)
        asks = RULES if hops <= 5 else ALL
        yield Fault(f"{hops} redirects", asks, "F-2", [first], paths)
    for status in (300, 301, 302, 303, 307, 308):
        paths = {"/r": [robots(RULES_TEXT)]}
        yield Fault(f"redirect by {status}", RULES, "F-2", [redirect("/r", status)], paths)
    to_itself, to_other = redirect("/robots.txt"), redirect("/r")
    yield Fault("redirect to itself", ALL, "F-2", [to_itself], requests=6)
    paths = {"/r": [to_itself]}
    yield Fault("redirect loop of two", ALL, "F-2", [to_other], paths, requests=3)
    locations = {
        "empty": "",
        "broken": "http://[::1/robots.txt",
        "of ftp": "ftp://127.0.0.1/robots.txt",
        "of file": "file:///etc/hosts",
        "of javascript": "javascript:alert(1)",
        "of data": "data:text/plain,User-agent: *",
        "with a bad port": "http://127.0.0.1:99999/robots.txt",
    }
    yield Fault("Location missing", ALL, "F-2", [answer(302, "")])
    for name, location in locations.items():
        moved = answer(302, "", headers={"Location": location})
        yield Fault(f"Location {name}", ALL, "F-2", [moved])
    for status, asks in ((404, ALL), (503, NONE)):
        yield Fault(f"redirect to a {status}", asks, "F-2", [to_other], {"/r": [answer(status)]})
    yield Fault("redirect to a hang", NONE, "F-10", [to_other], {"/r": [HANGS]}, SHORT_TIME)
    refresh = f'<html><meta http-equiv="refresh" content="0;url=/r">\n{RULES_TEXT}</html>'
    page = answer(200, refresh, headers={"Content-Type": "text/html"})
    yield Fault("meta refresh is not followed", RULES, "F-4", [page], {"/r": [robots("")]})
    html = answer(200, "<html><h1>Welcome</h1></html>", headers={"Content-Type": "text/html"})
    yield Fault("HTML instead of robots.txt", ALL, "F-1", [html])


def bodies():
    resets = {
        "closed before an answer": [["close"]],
        "reset before an answer": [["reset"]],
        "reset within the head": raw(HEAD, ["wait", 0.1], ["reset"]),
    }
    yield from faults(NONE, "F-10", resets, requests=None)
    broken = {
        "reset within the body": [TOO_SHORT[0], ["wait", 0.1], ["reset"]],
        "body shorter than Content-Length": TOO_SHORT,
        "Content-Length that is no number": raw(
            f"{HEAD}Content-Length: many\r\n\r\n{RULES_TEXT}", ["close"]
        ),
        "chunk with a bad length": raw(f"{CHUNKED}{CHUNK}xyz\r\nabc\r\n", ["close"]),
        "chunks cut within one": raw(f"{CHUNKED}{CHUNK}fff\r\nabc", ["close"]),
        "chunks without the last": raw(f"{CHUNKED}{CHUNK}", ["close"]),
        "no HTTP at all": raw("SSH-2.0-OpenSSH_9.2\r\n", ["close"]),
        "bytes at random": raw("\x00\xff\x13\x37" * 50, ["close"]),
    }
    yield from faults(NONE, "F-10", broken)
    name, off = "the same, DOWNLOAD_FAIL_ON_DATALOSS off", {"DOWNLOAD_FAIL_ON_DATALOSS": False}
    yield Fault(name, NONE, "F-10", [TOO_SHORT], settings=off)
    whole = {
        "body longer than Content-Length": raw(
            f"{HEAD}{DECLARED}{RULES_TEXT}Disallow: /public\n", ["close"]
        ),
        "body ended by closing": raw(f"{HEAD}Connection: close\r\n\r\n{RULES_TEXT}", ["close"]),
        "HTTP/1.0": raw(f"{HEAD.replace('1.1', '1.0')}\r\n{RULES_TEXT}", ["close"]),
        "chunks": raw(f"{CHUNKED}{CHUNK}0\r\n\r\n"),
    }
    yield from faults(RULES, "F-1", whole)


def codings():
    def coded(coding, body):
        return answer(200, body, headers={"Content-Encoding": coding})

    text = RULES_TEXT.encode()
    members = gzip.compress(b"User-agent: *\n") + gzip.compress(b"Disallow: /private\n")
    read = {
        "gzip": gzipped(RULES_TEXT),
        "x-gzip, in capitals": coded("X-GZIP", gzip.compress(text)),
        "deflate": coded("deflate", zlib.compress(text)),
        "raw deflate": coded("deflate", raw_deflate(text)),
        "gzip twice": coded("gzip, gzip", gzip.compress(gzip.compress(text))),
        "gzip in two members": coded("gzip", members),
        "a charset for a coding": coded("utf-8", RULES_TEXT),
    }
    yield from faults(RULES, "F-1", read)
    broken = {
        "gzip that is none": coded("gzip", RULES_TEXT),
        "gzip with a wrong checksum": coded("gzip", PACKED[:-8] + b"\0" * 8),
        "gzip that is cut": coded("gzip", PACKED[:-20]),
        "a coding that nobody knows": coded("rot13", RULES_TEXT),
    }
    yield from faults(NONE, "F-10", broken)
    yield Fault("gzip of nothing", ALL, "F-1", [coded("gzip", b"")])
    for status, asks in ((404, ALL), (500, NONE)):
        page = answer(status, "oops", headers={"Content-Encoding": "gzip"})
        yield Fault(f"a {status} with broken gzip", asks, "F-5", [page])
    name, off = "COMPRESSION_ENABLED off, gzip all the same", {"COMPRESSION_ENABLED": False}
    yield Fault(name, RULES, "F-1", [gzipped(RULES_TEXT)], settings=off)


def sizes():
    filler = "# filler\n"
    full = RULES_TEXT + filler * 60_000
    beyond = (filler * 60_000)[:512_000] + "\n" + RULES_TEXT
    at_limit = "#" * (512_000 - len(RULES_TEXT) - 1) + "\n" + RULES_TEXT
    cut_line = "User-agent: *\nDisallow: /p"
    cut_line = "#" * (512_000 - len(cut_line) - 1) + "\n" + cut_line + "laces\n"
    block, chunk = filler * 1000, f"{len(filler) * 1000:x}\r\n{filler * 1000}\r\n"
    read = {
        "more than 500 KiB": robots(full),
        "rules within the last of 500 KiB": robots(at_limit),
        "more than 500 KiB, compressed": gzipped(full),
        "Content-Length of a TiB": raw(
            f"{HEAD}Content-Length: {2**40}\r\n\r\n{RULES_TEXT}", ["repeat", block, 1000, 0]
        ),
        "endless and fast": raw(f"{HEAD}\r\n{RULES_TEXT}", ["repeat", block, 10_000, 0]),
        "endless and fast, in chunks": raw(CHUNKED + CHUNK, ["repeat", chunk, 10_000, 0]),
        "gzip bomb of 1 GiB": answer(200, bomb(), headers={"Content-Encoding": "gzip"}),
    }
    yield from faults(RULES, "F-13", read)
    cut = {
        "rules after 500 KiB": robots(beyond),
        "rule cut by the end of 500 KiB": robots(cut_line),
        "rules after 500 KiB, compressed": gzipped(beyond),
    }
    yield from faults(ALL, "F-13", cut)
    yield Fault(
        "DOWNLOAD_MAXSIZE of 10 bytes",
        RULES,
        "F-13",
        [robots(RULES_TEXT)],
        settings={"DOWNLOAD_MAXSIZE": 10},
        paths={"*": [answer(200, "short")]},
    )
    slow = {
        "endless and slow": raw(f"{HEAD}\r\n{RULES_TEXT}", ["repeat", filler, 1000, 0.1]),
        "a byte at a time": [["repeat", "H", 1000, 0.1]],
        "endless head": raw(HEAD, ["repeat", "X-More: header\r\n", 10_000_000, 0.01]),
        "hangs": HANGS,
        "hangs after the head": raw(f"{HEAD}Content-Length: 99\r\n\r\n", ["hold"]),
    }
    yield from faults(NONE, "F-10", slow, settings=SHORT_TIME)
    limit = {"DOWNLOAD_TIMEOUT": 0.5}
    yield Fault("hangs, DOWNLOAD_TIMEOUT", NONE, "F-10", [HANGS], settings=limit)


def middlewares():
    one = [robots(RULES_TEXT)]
    to_r1, hops = [redirect("/r1")], {"/r1": [redirect("/r2")], "/r2": one}
    three = {"/r1": [redirect("/r2")], "/r2": [redirect("/r3")], "/r3": one}
    no_wait = {"DOWNLOAD_SLOTS": {"127.0.0.1": {"delay": 0}}}
    throttle = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1}
    conditional = {"DEFAULT_REQUEST_HEADERS": {"If-None-Match": "x", "Range": "bytes=0-1"}}
    cut = raw(f"{HEAD}Content-Length: 9\r\n\r\n", ["close"])
    for name, asks, answers, paths, settings in [
        ("REDIRECT_MAX_TIMES of 1", RULES, to_r1, hops, {"REDIRECT_MAX_TIMES": 1}),
        ("REDIRECT_ENABLED off", RULES, to_r1, {"/r1": one}, {"REDIRECT_ENABLED": False}),
        ("RETRY_TIMES of 5 at a 503", NONE, [answer(503)], {}, {"RETRY_TIMES": 5}),
        ("RETRY_TIMES of 5 at a reset", NONE, [cut], {}, {"RETRY_TIMES": 5}),
        (
            "DOWNLOAD_DELAY of 60 s and three hops",
            RULES,
            to_r1,
            three,
            {**no_wait, "DOWNLOAD_DELAY": 60},
        ),
        ("AutoThrottle", RULES, one, {}, throttle),
    ]:
        yield Fault(name, asks, "DESIGN 2", answers, paths, settings)
    yield Fault("conditional headers by default", RULES, "S-8", one, settings=conditional)
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


FAULTS = [*statuses(), *redirects(), *bodies(), *codings(), *sizes(), *middlewares()]
