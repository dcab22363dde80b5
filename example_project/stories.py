"""The stories of the demonstration web: what each origin answers to robots.txt, and its pages."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

FOR_EVER = 3600.0
"""Seconds that nobody waits."""


@dataclass(frozen=True)
class Answer:
    """How one request is answered."""

    body: bytes = b""
    status: int = 200
    """0: the body is all that is sent, without a status line and headers."""
    headers: dict[str, str] = field(default_factory=dict)
    """``{port}`` in a value is the port of the origin."""
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
    """One origin.

    ``allowed`` and ``forbidden`` are its pages: what robots.txt says of each, written down here
    by hand, is what the web judges a crawler by. Those in ``later_…`` are linked from a page that
    comes some seconds after the others, when ``robots_later`` holds, if there is one.
    """

    name: str
    shows: str
    """What a reader is to learn of it."""
    clause: str
    """Whose rule it is, and where it is written."""
    robots: Answer
    """The answer to /robots.txt."""
    robots_later: Answer | None = None
    """The answer some seconds later, where it is another one."""
    doors: tuple[str, ...] = ("/",)
    """Pages that the start page links to; they link to the others."""
    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    later_allowed: tuple[str, ...] = ()
    later_forbidden: tuple[str, ...] = ()
    files: dict[str, Answer] = field(default_factory=dict)
    """Answers other than a page of links, such as what robots.txt redirects to."""

    @property
    def may_be_fetched(self) -> frozenset[str]:
        """The pages that a crawler may ask for."""
        return frozenset(self.allowed + self.later_allowed)


def text(body: str, **headers: str) -> Answer:
    """Return a robots.txt as most sites send it."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(body.encode(), headers={"Content-Type": "text/plain", **names})


def redirect(location: str) -> Answer:
    """Return a redirect."""
    return Answer(status=301, headers={"Location": location})


def gzip_bomb(start: bytes, mebibytes: int) -> Answer:
    """Return ``start`` and so many MiB of comment lines behind it, a thousand times smaller."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    parts = [packer.compress(start)]
    filling = b"#######\n" * (2**20 // 8)
    parts += [packer.compress(filling) for _ in range(mebibytes)]
    parts.append(packer.flush())
    headers = {"Content-Type": "text/plain", "Content-Encoding": "gzip"}
    return Answer(b"".join(parts), headers=headers)


PRIVATE = "User-agent: *\nDisallow: /private\n"
"""The rules of those sites whose story is not about rules."""

STORIES = (
    Story(
        "plain rules",
        "the longest matching rule decides",
        "RFC 9309 §2.2.2",
        robots=text("User-agent: *\nDisallow: /private\nAllow: /private/open\n"),
        allowed=("/", "/news", "/private/open"),
        forbidden=("/private", "/private/diary"),
    ),
    Story(
        "wildcards",
        "* matches any characters, $ the end of the URL",
        "RFC 9309 §2.2.3",
        robots=text("User-agent: *\nDisallow: /*.php$\nDisallow: /*?sort=\n"),
        allowed=("/", "/shop", "/index.php?page=2", "/shop.php5"),
        forbidden=("/index.php", "/shop?sort=price"),
    ),
    Story(
        "a group for us",
        "only the group that names the crawler applies",
        "Google, user-agent",
        robots=text(
            "User-agent: *\nDisallow: /\n\nUser-agent: DemoBot/2.0\nDisallow: /not-for-demobot\n"
        ),
        allowed=("/", "/welcome"),
        forbidden=("/not-for-demobot",),
    ),
    Story(
        "none (404)",
        "there is no robots.txt: everything is allowed",
        "Google, 4xx",
        robots=Answer(b"no such file", 404),
        allowed=("/", "/private"),
    ),
    Story(
        "forbidden (403)",
        "the same for any other 4xx except 429",
        "Google, 4xx",
        robots=Answer(b"go away", 403),
        allowed=("/", "/private"),
    ),
    Story(
        "down (503)",
        "unreachable: nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        robots=Answer(b"overloaded", 503),
        doors=("/", "/news"),
        forbidden=("/", "/news"),
    ),
    Story(
        "down, then recovers",
        "robots.txt is tried again",
        "Google, 5xx",
        robots=Answer(b"overloaded", 503),
        robots_later=text(PRIVATE),
        doors=("/morning",),
        forbidden=("/morning",),
        later_allowed=("/noon", "/evening"),
        later_forbidden=("/private",),
    ),
    Story(
        "hangs",
        "a timeout: nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        robots=Answer(delay=FOR_EVER),
        doors=("/", "/news"),
        forbidden=("/", "/news"),
    ),
    Story(
        "redirect chain",
        "five redirects are followed",
        "RFC 9309 §2.3.1.2",
        robots=redirect("/robots-1"),
        files={
            **{f"/robots-{hop}": redirect(f"/robots-{hop + 1}") for hop in range(1, 5)},
            "/robots-5": text(PRIVATE),
        },
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "redirect to another host",
        "its rules apply to the origin that was asked first",
        "RFC 9309 §2.3.1.2",
        robots=redirect("http://localhost:{port}/robots-of-all-our-sites"),
        files={"/robots-of-all-our-sites": text(PRIVATE)},
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "endless file",
        "the first 500 KiB are read",
        "RFC 9309 §2.5",
        robots=Answer(PRIVATE.encode(), endless=b"# and so on\n" * 1024),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "gzip bomb",
        "the same for 100 MiB in 100 KiB",
        "RFC 9309 §2.5",
        robots=gzip_bomb(PRIVATE.encode(), 100),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "HTML for robots.txt",
        "it is read, and contains no rules",
        "Google, file format",
        robots=Answer(b"<html><p>Welcome!</p></html>", headers={"Content-Type": "text/html"}),
        allowed=("/", "/private"),
    ),
    Story(
        "expires quickly",
        "after max-age the new rules apply",
        "Google, caching",
        robots=text("User-agent: *\nDisallow: /new\n", Cache_Control="max-age=1"),
        robots_later=text("User-agent: *\nDisallow: /old\n", Cache_Control="max-age=3600"),
        allowed=("/", "/old/map"),
        forbidden=("/new/map",),
        later_allowed=("/new/list",),
        later_forbidden=("/old/list",),
    ),
    Story(
        "a burst of links",
        "fifty requests wait for one robots.txt",
        "RFC 9309 §2.2.2",
        robots=Answer(
            b"User-agent: *\nDisallow: /\nAllow: /page/7$\n",
            headers={"Content-Type": "text/plain"},
            delay=1,
        ),
        doors=(),
        later_allowed=("/page/7",),
        later_forbidden=tuple(f"/page/{number}" for number in range(1, 51) if number != 7),  # noqa: PLR2004 - the seventh
    ),
)
