"""What a story is made of: the answers of an origin, its pages, and what a crawler may fetch."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

FOR_EVER = 3600.0
"""Seconds that nobody waits."""
WORDS = "<p>This is a page of a small web on your own machine, for crawlers to show what they do."
"""Some crawlers don't take a page with less text for one."""
HTML = {"Content-Type": "text/html; charset=utf-8"}
ROBOTS, TAGS, POLITENESS = KINDS = ("robots.txt", "robots tags", "politeness")
"""What a story is about: rules of robots.txt, of a page's tags, or how often a host is asked."""


@dataclass(frozen=True)
class Answer:
    body: bytes = b""
    status: int = 200
    """0: the body is all that is sent, without a status line and headers."""
    headers: dict[str, str] = field(default_factory=dict)
    """``{port}`` in a value is the port of the origin, ``{beside}`` the URL of the other one."""
    delay: float = 0.0
    """Seconds before the answer."""
    endless: bytes = b""
    """What follows the body again and again, until the client has had enough."""
    pause: float = 0.0
    """Seconds before each of these."""
    ends: str = ""
    """How the connection ends with it: ``close`` or ``reset``, whatever its headers promise."""


@dataclass(frozen=True)
class Story:
    """One origin, or two.

    ``allowed`` and ``forbidden`` are its pages: what robots.txt says of each, written down here
    by hand, is what a crawler is judged by. Those in ``later_…`` are linked from a page that comes
    some seconds after the others, when ``robots_later`` holds, if there is one.

    In a robots.txt, ``DemoBot`` stands for the product token of the crawler, and ``HalfBot`` for
    the same without its last letter.
    """

    name: str
    shows: str
    """What a reader is to learn of it."""
    clause: str
    """Whose rule it is, and where it is written."""
    by: str
    """The sentence there that decides; of a decision, why."""
    robots: Answer
    """The answer to /robots.txt."""
    kind: str = ROBOTS
    needs: str = ""
    """What a crawler has to be set for, where usual defaults can't keep the story."""
    robots_later: Answer | None = None
    """The answer some seconds later, where it is another one."""
    opens_later: bool = False
    """Whether connections are refused until then."""
    doors: tuple[str, ...] = ("/",)
    """Pages that the start page links to; they link to the others."""
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    later_allowed: tuple[str, ...] = ()
    later_forbidden: tuple[str, ...] = ()
    files: dict[str, Answer] = field(default_factory=dict)
    """Answers other than a page of links, such as what robots.txt redirects to."""
    first: dict[str, Answer] = field(default_factory=dict)
    """Answers to the first request alone."""
    links: tuple[str, ...] = ()
    """What its pages link to, as it is written there, if not just to ``allowed`` and ``forbidden``."""
    beside: dict[str, Story] = field(default_factory=dict)
    """The other origin: another ``port`` of the host, ``https`` on the same port, or ``localhost``
    in place of its address."""
    gap: float = 0.0
    """Seconds that are to be between two requests of pages."""
    robots_gap: float = 0.0
    """The same of robots.txt."""
    pause: float = 0.0
    """Seconds that are to be between the first request of a page and the next."""
    once: bool = False
    """Whether one request of robots.txt is enough."""
    names_itself: bool = False
    """Whether the header User-Agent of the request of robots.txt is to have the product token."""
    not_robots: tuple[str, ...] = ()
    """What is not to be asked for in place of robots.txt."""

    @property
    def row(self) -> dict[str, str]:
        told = {name: getattr(self, name) for name in ("shows", "clause", "by", "kind", "needs")}
        return {"story": self.name, **told}

    @property
    def may_be_fetched(self) -> frozenset[str]:
        return frozenset(self.allowed + self.later_allowed)

    @property
    def changes(self) -> bool:
        """Whether the origin answers otherwise some seconds later."""
        return self.robots_later is not None or self.opens_later


ALL = "User-agent: *\nDisallow:\n"
NOTHING = "User-agent: *\nDisallow: /\n"
PRIVATE = "User-agent: *\nDisallow: /private\n"
"""The rules of those sites whose story is not about rules."""


def text(body: str, **headers: str) -> Answer:
    """Return a robots.txt as most sites send it."""
    return Answer(body.encode(), headers={"Content-Type": "text/plain", **named(headers)})


def redirect(location: str) -> Answer:
    return Answer(status=301, headers={"Location": location})


def html(body: str, head: str = "", **headers: str) -> Answer:
    page = f"<!doctype html><html><head><title>a page</title>{head}</head>\n"
    page += f"<body><h1>A page</h1>\n{WORDS}\n{body}</body></html>\n"
    return Answer(page.encode(), headers=HTML | named(headers))


def named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def gzip_bomb(start: bytes, mebibytes: int) -> Answer:
    """Return ``start`` and so many MiB of comment lines behind it, a thousand times smaller."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    parts = [packer.compress(start)]
    filling = b"#######\n" * (2**20 // 8)
    parts += [packer.compress(filling) for _ in range(mebibytes)]
    parts.append(packer.flush())
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    return Answer(b"".join(parts), headers=headers)


def private(robots: Answer) -> dict[str, object]:
    """Return a robots.txt that disallows one page of three, however it says so."""
    return {"robots": robots, "allowed": ("/", "/news"), "forbidden": ("/private",)}


def rules(body: bytes, **how: object) -> dict[str, object]:
    """Return the same, with its body."""
    return private(Answer(body, headers={"Content-Type": "text/plain"}, **how))


def broken(answer: Answer | None = None, **how: object) -> dict[str, object]:
    """Return a robots.txt that can't be fetched: whatever it would say, nothing may be."""
    return {
        "robots": answer or Answer(**how),
        "doors": ("/", "/news"),
        "forbidden": ("/", "/news"),
    }


def open_to_all(answer: Answer, **more: object) -> dict[str, object]:
    """Return a robots.txt that disallows nothing."""
    return {"robots": answer, "allowed": ("/", "/private"), **more}


def other(robots: Answer, **more: object) -> Story:
    return Story("", "", "", "", robots, **more)
