"""The sites that every stack crawls: each has a story, and says by hand what it forbids."""

from __future__ import annotations

import gzip
from collections import Counter
from dataclasses import dataclass, field

from tests.crawling.web import PAGE, answer, robots

SPECIAL = "specialbot/1.0"
"""A User-Agent that one of the sites has a group for."""
_HTML = {"Content-Type": "text/html", "Cache-Control": "max-age=86400"}
_LINE = "# nothing but padding, so that this file is as large as it is\n" * 1000
_TIMES = 40_000_000 // len(_LINE)


def html(body):
    return [answer(200, f"<html><body>{body}</body></html>", headers=_HTML)]


def error(status, reason):
    body = f"<html><body><h1>{status} {reason}</h1></body></html>"
    return answer(status, body, headers={"Content-Type": "text/html"})


def big(rules):
    """The steps of an answer of 40 MB that begins with ``rules``."""
    head = answer(200, rules, length=False, headers={"Content-Type": "text/plain"})[0]
    return [head, ["repeat", _LINE, _TIMES, 0], ["close"]]


def chunks(text):
    """The steps of an answer with ``text`` in two transfer codings (RFC 9112 §7): gzip, chunked."""
    packed = gzip.compress(text.encode()).decode("latin-1")
    headers = {"Content-Type": "text/plain", "Transfer-Encoding": "gzip, chunked"}
    head = answer(200, headers=headers, length=False)[0]
    return [head, ["send", f"{len(packed):x}\r\n{packed}\r\n0\r\n\r\n"]]


@dataclass
class Story:
    """What a site says, what is asked of it, and what of that may reach it."""

    robots: list
    ask: list
    """Paths to be asked for."""
    reaches: list
    """Those that are to reach it, and what comes of them."""
    forbidden: tuple = ("/private",)
    """How targets begin that must not reach it."""
    forbidden_to_special: tuple = ("/private",)
    pages: dict = field(default_factory=dict)


def stories():
    rules = robots("User-agent: *\nDisallow: /private\n")
    return {
        "plain": Story(rules, ask=["/", "/private/a", "/private/b?c=d"], reaches=["/"]),
        "moved": Story(
            rules,
            ask=["/moved"],
            reaches=["/moved"],
            pages={"/moved": [answer(302, headers={**_HTML, "Location": "/private/moved"})]},
        ),
        "none": Story(
            error(404, "Not Found"), ask=["/private/c"], reaches=["/private/c"], forbidden=()
        ),
        "down": Story(
            error(503, "Service Unavailable"), ask=["/page"], reaches=[], forbidden=("/",)
        ),
        "agents": Story(
            robots(
                "User-agent: specialbot\nDisallow: /special\n\nUser-agent: *\nDisallow: /private\n"
            ),
            ask=["/page"],
            reaches=["/page"],
            forbidden_to_special=("/special",),
        ),
        "big": Story(
            big("User-agent: *\nDisallow: /private\n"),
            ask=["/page", "/private/d"],
            reaches=["/page"],
        ),
        "packed": Story(
            chunks("User-agent: *\nDisallow: /private\n"),
            ask=["/page", "/private/e"],
            reaches=["/page"],
        ),
        # What browsers fetch by themselves.
        "rich": Story(
            rules,
            ask=["/rich", "/leaves"],
            reaches=["/rich", "/leaves"],
            pages={
                "/rich": html(
                    "<img src=/private/pixel.png><link rel=stylesheet href=/style.css>"
                    "<script>fetch('/private/api')</script><script src=/private/s.js></script>"
                ),
                "/leaves": html("<script>location.href = '/private/left'</script>"),
            },
        ),
    }


class Sites:
    def __init__(self, web, *names):
        self.stories = {name: story for name, story in stories().items() if name in names}
        self.open = {
            name: web.site(
                story.robots,
                paths={"*": [answer(200, PAGE, headers=_HTML)], **story.pages},
            )
            for name, story in self.stories.items()
        }
        self.seen = dict.fromkeys(self.open, 0)
        """How many requests of each site are left out of the journal."""

    def url(self, name, path="/"):
        return self.open[name].url(path)

    def url_of(self, text):
        """Return the URL of ``plain/page``."""
        name, _, path = text.partition("/")
        return self.url(name, f"/{path}")

    @property
    def urls(self):
        return [self.url(name, path) for name, story in self.stories.items() for path in story.ask]

    def journal(self):
        return [
            (name, entry["target"], entry["headers"])
            for name, site in self.open.items()
            for entry in site.journal[self.seen[name] :]
            if entry["target"] != "/favicon.ico"
        ]

    def go_away(self):
        """Break every connection from now on, as a network does; and begin the journal anew."""
        for name, site in self.open.items():
            paths = {path: [[["reset"]]] for path in ["*", *self.stories[name].pages]}
            site.change([["reset"]], paths=paths)
            self.seen[name] = len(site.journal)

    def leaked(self):
        """Return what reached a site that forbids it to the agent that asked."""
        return [
            f"{name}{target}"
            for name, target, headers in self.journal()
            if target != "/robots.txt" and target.startswith(self._forbidden(name, headers))
        ]

    def _forbidden(self, name, headers):
        story = self.stories[name]
        special = SPECIAL in headers.get("user-agent", "")
        return story.forbidden_to_special if special else story.forbidden

    def missing(self):
        came = {f"{name}{target}" for name, target, _ in self.journal()}
        return [each for each in self.reach() if each not in came]

    def reach(self):
        """Return what is to reach the sites of what is asked of them."""
        return [f"{name}{path}" for name, story in self.stories.items() for path in story.reaches]

    def robots_requests(self):
        return Counter(name for name, target, _ in self.journal() if target == "/robots.txt")
