"""The stories of the acid test: those of the demonstration web, and those that are for crawlers alone."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field

from stories import FOR_EVER, PRIVATE, STORIES, Answer, Story, redirect, text
from web import WORDS

HTML = {"Content-Type": "text/html; charset=utf-8"}
ALL = "User-agent: *\nDisallow:\n"
NOTHING = "User-agent: *\nDisallow: /\n"
KIB_500 = 512_000
MANY = tuple(f"/page/{number}" for number in range(1, 21))


@dataclass(frozen=True)
class AcidStory(Story):
    """An origin, or two.

    In a robots.txt, ``DemoBot`` stands for the product token of the crawler, and ``HalfBot`` for
    the same without its last letter. In a header, ``{beside}`` is the URL of the other origin.
    """

    links: tuple[str, ...] = ()
    """What its pages link to, as it is written there, if not just to ``allowed`` and ``forbidden``."""
    beside: dict[str, Story] = field(default_factory=dict)
    """The other origin: another ``port`` of the host, ``https`` on the same port, or ``localhost``
    in place of its address."""
    gap: float = 0.0
    """Seconds that are to be between two requests of pages."""
    robots_gap: float = 0.0
    """The same of robots.txt."""
    once: bool = False
    """Whether one request of robots.txt is enough."""
    not_robots: tuple[str, ...] = ()
    """What is not to be asked for in place of robots.txt."""


def broken(answer=None, **how):
    """A robots.txt that can't be fetched: whatever it would say, nothing may be."""
    return {
        "robots": answer or Answer(**how),
        "doors": ("/", "/news"),
        "forbidden": ("/", "/news"),
    }


def private(body, **how):
    """A robots.txt that disallows one page of three, however it says so."""
    return {
        "robots": Answer(body, headers={"Content-Type": "text/plain"}, **how),
        "allowed": ("/", "/news"),
        "forbidden": ("/private",),
    }


def open_to_all(answer, **more):
    """A robots.txt that disallows nothing."""
    return {"robots": answer, "allowed": ("/", "/private"), **more}


def html(body, head="", **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    text = f"<!doctype html><html><head><title>a page</title>{head}</head>\n"
    text += f"<body><h1>A page</h1>\n{WORDS}\n{body}</body></html>\n"
    return Answer(text.encode(), headers=HTML | names)


def to_private(page):
    """A page that leads, by itself or not, to one that is disallowed."""
    return {
        "robots": text(PRIVATE),
        "files": {"/": page},
        "allowed": ("/",),
        "forbidden": ("/private",),
    }


def filled(rule):
    """A robots.txt whose last line ends where 500 KiB end."""
    start = b"User-agent: *\n"
    filling = KIB_500 - len(start) - len(rule)
    lines = b"# and so on\n" * (filling // 12)
    return start + lines + b"#" * (filling - len(lines) - 1) + b"\n" + rule


OF_CRAWLERS = (
    AcidStory(
        "rules on a 404 page",
        "they are not read",
        "Google, 4xx",
        **open_to_all(Answer(NOTHING.encode(), 404, {"Content-Type": "text/plain"})),
    ),
    AcidStory(
        "login (401)",
        "the same for any other 4xx except 429",
        "Google, 4xx",
        **open_to_all(Answer(b"who are you", 401)),
    ),
    AcidStory(
        "no content (204)",
        "an empty file",
        "RFC 9309 §2.3.1.1",
        **open_to_all(Answer(status=204)),
    ),
    AcidStory(
        "too many requests (429)",
        "nothing is fetched for now",
        "Google, 5xx",
        **broken(body=b"slow down", status=429),
    ),
    AcidStory(
        "rules on a 500 page",
        "they are not read, and nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        **broken(body=ALL.encode(), status=500, headers={"Content-Type": "text/plain"}),
    ),
    AcidStory(
        "500 for not found",
        "a page that says so is as a 404",
        "Google, 5xx",
        **open_to_all(Answer(b"<title>Page not found</title><h1>Page not found</h1>", 500, HTML)),
    ),
    AcidStory(
        "503 with Retry-After",
        "robots.txt is not asked for earlier",
        "decision, Retry-After",
        robots=Answer(b"overloaded", 503, {"Retry-After": "2"}),
        robots_later=text(PRIVATE),
        doors=("/morning",),
        forbidden=("/morning",),
        later_allowed=("/noon",),
        later_forbidden=("/private",),
        robots_gap=2,
    ),
    AcidStory(
        "connection reset",
        "nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        **broken(ends="reset"),
    ),
    AcidStory(
        "connection closed",
        "the same",
        "RFC 9309 §2.3.1.4",
        **broken(status=0, ends="close"),
    ),
    AcidStory(
        "incomplete body",
        "the same, although it begins with rules",
        "Google, other errors",
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, ends="close"),
    ),
    AcidStory(
        "broken chunks",
        "the same",
        "Google, other errors",
        **broken(
            body=b"17\r\n" + ALL.encode()[:23] + b"\r\nno number\r\n",
            headers={"Transfer-Encoding": "chunked", "Content-Type": "text/plain"},
            ends="close",
        ),
    ),
    AcidStory(
        "no HTTP",
        "the same",
        "Google, other errors",
        **broken(body=b"220 welcome to our mail server\r\n", status=0, ends="close"),
    ),
    AcidStory(
        "drips",
        "the same for a file that comes byte by byte",
        "Google, other errors",
        **broken(body=ALL.encode(), endless=b"#", pause=0.2),
    ),
    AcidStory(
        "hangs in the body",
        "the same",
        "Google, other errors",
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, endless=b"#", pause=FOR_EVER),
    ),
    AcidStory(
        "redirect loop",
        "as a 404",
        "Google, 3xx",
        **open_to_all(redirect("/robots.txt")),
    ),
    AcidStory(
        "redirect to nowhere",
        "as a 404",
        "decision, Location",
        **open_to_all(Answer(status=302)),
    ),
    AcidStory(
        "redirect to a mail address",
        "as a 404",
        "decision, Location",
        **open_to_all(redirect("mailto:webmaster@example.com")),
    ),
    AcidStory(
        "redirect from http to https",
        "the rules hold for http",
        "RFC 9309 §2.3.1.2",
        robots=redirect("{beside}/robots-of-https"),
        allowed=("/", "/news"),
        forbidden=("/private",),
        beside={
            "https": Story(
                "", "", "", text(ALL), doors=(), files={"/robots-of-https": text(PRIVATE)}
            )
        },
    ),
    AcidStory(
        "meta refresh for robots.txt",
        "it is not followed",
        "Google, 3xx",
        **open_to_all(
            html("", '<meta http-equiv="refresh" content="0; url=/robots-of-frames">'),
            files={"/robots-of-frames": text(NOTHING)},
            not_robots=("/robots-of-frames",),
        ),
    ),
    AcidStory(
        "page redirects to what is disallowed",
        "a redirect of a page is as a link",
        "RFC 9309 §2.2.2",
        **to_private(redirect("/private")),
    ),
    AcidStory(
        "page redirects to another origin",
        "whose robots.txt is asked for first",
        "RFC 9309 §2.3",
        robots=text(PRIVATE),
        files={"/": redirect("{beside}/news")},
        allowed=("/",),
        beside={"port": Story("", "", "", text(NOTHING), doors=(), forbidden=("/news",))},
    ),
    AcidStory(
        "page refreshes to what is disallowed",
        "the same for a meta refresh",
        "RFC 9309 §2.2.2",
        **to_private(html("", '<meta http-equiv="refresh" content="0; url=/private">')),
    ),
    AcidStory(
        "page embeds what is disallowed",
        "images, frames and scripts are URIs, too",
        "RFC 9309 §2.2.2",
        robots=text(PRIVATE),
        files={
            "/": html(
                '<img src="/private/a.png"><iframe src="/private/b"></iframe>'
                '<script src="/private/c.js"></script><script>fetch("/private/d")</script>'
            )
        },
        allowed=("/",),
        forbidden=("/private/a.png", "/private/b", "/private/c.js", "/private/d"),
    ),
    AcidStory(
        "two ports",
        "each has its robots.txt",
        "Google, examples",
        robots=text(PRIVATE),
        allowed=("/", "/news"),
        forbidden=("/private",),
        beside={
            "port": Story(
                "", "", "", text("User-agent: *\nDisallow: /news\n"), allowed=("/", "/private"),
                forbidden=("/news",),
            )
        },
    ),
    AcidStory(
        "http and https",
        "the same for schemes, on one port",
        "Google, examples",
        robots=text(PRIVATE),
        allowed=("/", "/news"),
        forbidden=("/private",),
        beside={
            "https": Story(
                "", "", "", text("User-agent: *\nDisallow: /news\n"), allowed=("/", "/private"),
                forbidden=("/news",),
            )
        },
    ),
    AcidStory(
        "a name and its address",
        "the same for hosts, on one port",
        "Google, examples",
        robots=text(PRIVATE),
        allowed=("/", "/news"),
        forbidden=("/private",),
        beside={
            "localhost": Story(
                "", "", "", text("User-agent: *\nDisallow: /news\n"), allowed=("/", "/private"),
                forbidden=("/news",),
            )
        },
    ),
    AcidStory(
        "a rule at 500 KiB",
        "so much is read at least",
        "RFC 9309 §2.5",
        **private(filled(b"Disallow: /private\n")),
    ),
    AcidStory(
        "gzip",
        "a file that is sent compressed",
        "RFC 9309 §2.3.1.1",
        robots=Answer(
            gzip.compress(PRIVATE.encode()),
            headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"},
        ),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    AcidStory(
        "byte order mark",
        "it is ignored",
        "Google, file format",
        **private(b"\xef\xbb\xbf" + PRIVATE.encode()),
    ),
    AcidStory(
        "not UTF-8",
        "the lines that are valid count",
        "Google, file format",
        **private(b"# caf\xe9\nUser-agent: *\nDisallow: /caf\xe9\nDisallow: /private\n"),
    ),
    AcidStory(
        "lines end with CR",
        "as with LF",
        "RFC 9309 §2.2",
        **private(PRIVATE.replace("\n", "\r").encode()),
    ),
    AcidStory(
        "two groups for us",
        "they are one",
        "RFC 9309 §2.2.1",
        robots=text(
            "User-agent: DemoBot\nDisallow: /one\n\nUser-agent: *\nDisallow: /\n\n"
            "User-agent: DemoBot\nDisallow: /two\n"
        ),
        allowed=("/", "/news"),
        forbidden=("/one", "/two"),
    ),
    AcidStory(
        "a group for half of our name",
        "is not ours",
        "RFC 9309 §2.2.1",
        robots=text("User-agent: HalfBot\nDisallow: /news\n\nUser-agent: *\nDisallow: /private\n"),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    AcidStory(
        "as specific",
        "Allow wins over a Disallow of the same length",
        "RFC 9309 §2.2.2",
        robots=text("User-agent: *\nDisallow: /news\nDisallow: /private\nAllow: /news\n"),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    AcidStory(
        "spellings of a URL",
        "escapes are compared in one form",
        "RFC 9309 §2.2.2",
        robots=text("User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%7Ejoe\nDisallow: /straße\n"),
        links=("/caf\u00e9", "/caf%c3%a9", "/~joe", "/%7ejoe", "/stra%C3%9Fe", "/stra\u00dfe", "/Caf%C3%A9"),
        allowed=("/", "/Caf\u00e9"),
        forbidden=("/caf\u00e9", "/~joe", "/stra\u00dfe"),
    ),
    AcidStory(
        "odd links",
        "fragments, dots, and what is in a query",
        "RFC 9309 §2.2.2",
        robots=text(PRIVATE),
        links=("/private#top", "/news/../private/a", "./private?", "/PRIVATE", "/?in=/private"),
        allowed=("/", "/PRIVATE", "/?in=/private"),
        forbidden=("/private", "/private/a", "/news/../private/a", "/private?"),
    ),
    AcidStory(
        "crawl delay",
        "a second between requests",
        "decision, Crawl-delay",
        robots=text("User-agent: *\nCrawl-delay: 1\n"),
        allowed=("/", "/one", "/two"),
        gap=1,
    ),
    AcidStory(
        "twenty pages",
        "robots.txt is fetched once",
        "decision, caching",
        robots=text(PRIVATE, Cache_Control="max-age=86400"),
        allowed=("/", *MANY),
        forbidden=("/private",),
        once=True,
    ),
    AcidStory(
        "nofollow",
        "links of such a page are not followed",
        "decision, robots meta tag",
        robots=text(ALL),
        files={"/": html('<a href="/secret">here</a>', '<meta name="robots" content="nofollow">')},
        allowed=("/",),
        forbidden=("/secret",),
    ),
    AcidStory(
        "nofollow in a header",
        "the same",
        "decision, X-Robots-Tag",
        robots=text(ALL),
        files={"/": html('<a href="/secret">here</a>', X_Robots_Tag="nofollow")},
        allowed=("/",),
        forbidden=("/secret",),
    ),
)  # fmt: skip
ACID = STORIES + OF_CRAWLERS
