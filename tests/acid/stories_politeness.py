"""Stories of how often a host is asked: no rule of robots.txt, but what its people complain of."""

from __future__ import annotations

from .quotes import RETRY_AFTER, RETRY_AFTER_503, TOO_MANY
from .story import POLITENESS, PRIVATE, Answer, Story, redirect, text

MANY = tuple(f"/page/{number}" for number in range(1, 21))
NO_DOCUMENT = "In no document; sites write it, and mean seconds between two requests."
DELAY = text("User-agent: *\nCrawl-delay: 1\n")


def busy(answer: Answer) -> dict[str, object]:
    """A page that names, when it is asked for first, how long to wait. A crawler may give up, too."""
    return {
        "kind": POLITENESS,
        "robots": text(PRIVATE),
        "first": {"/": answer},
        "allowed": ("/",),
        "forbidden": ("/private",),
        "pause": 4,
    }


STORIES = (
    Story(
        "503 with Retry-After",
        "robots.txt is not asked for earlier",
        "RFC 9110 §10.2.3",
        RETRY_AFTER_503,
        kind=POLITENESS,
        robots=Answer(b"overloaded", 503, {"Retry-After": "2"}),
        robots_later=text(PRIVATE),
        doors=("/morning",),
        forbidden=("/morning",),
        later_allowed=("/noon",),
        later_forbidden=("/private",),
        robots_gap=2,
    ),
    Story(
        "page with 429 and Retry-After",
        "the host is not asked earlier",
        "RFC 6585 §4",
        TOO_MANY,
        **busy(Answer(b"slow down", 429, {"Retry-After": "4"})),
    ),
    Story(
        "page with 503 and Retry-After",
        "the same",
        "RFC 9110 §10.2.3",
        RETRY_AFTER,
        **busy(Answer(b"overloaded", 503, {"Retry-After": "4"})),
    ),
    Story(
        "crawl delay",
        "a second between requests",
        "decision, Crawl-delay",
        NO_DOCUMENT,
        kind=POLITENESS,
        robots=DELAY,
        allowed=("/", "/one", "/two"),
        gap=1,
    ),
    Story(
        "crawl delay and redirects",
        "what a page redirects to is a request of its host, too",
        "decision, Crawl-delay",
        NO_DOCUMENT,
        kind=POLITENESS,
        robots=DELAY,
        files={"/one": redirect("/two"), "/three": redirect("/four")},
        links=("/one", "/three"),
        allowed=("/", "/one", "/two", "/three", "/four"),
        gap=1,
    ),
    Story(
        "twenty pages",
        "robots.txt is fetched once",
        "decision, caching",
        "Its max-age is a day.",
        kind=POLITENESS,
        robots=text(PRIVATE, Cache_Control="max-age=86400"),
        allowed=("/", *MANY),
        forbidden=("/private",),
        once=True,
    ),
)  # fmt: skip
