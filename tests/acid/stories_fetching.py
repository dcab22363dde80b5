"""Stories of how robots.txt is fetched, and of what no answer means."""

from __future__ import annotations

import gzip

from .quotes import (
    DOC_3XX,
    DOC_4XX,
    DOC_5XX,
    DOC_ERRORS,
    DOC_LOCATION,
    DOC_LOGICAL,
    LIMIT,
    REDIRECTS,
    SERVICE,
    SUBSTRING,
    SUCCESS,
    UNREACHABLE,
)
from .story import (
    ALL,
    FOR_EVER,
    NOTHING,
    PRIVATE,
    Answer,
    Story,
    broken,
    html,
    open_to_all,
    other,
    redirect,
    rules,
    text,
)

KIB_500 = 512_000
NEWS = "User-agent: *\nDisallow: /news\n"


def filled(rule):
    """Return a robots.txt whose last line ends where 500 KiB end."""
    start = b"User-agent: *\n"
    filling = KIB_500 - len(start) - len(rule)
    lines = b"# and so on\n" * (filling // 12)
    return start + lines + b"#" * (filling - len(lines) - 1) + b"\n" + rule


def two_origins(where):
    """Two origins, whose rules are different."""
    return {
        "robots": text(PRIVATE),
        "allowed": ("/", "/news"),
        "forbidden": ("/private",),
        "beside": {where: other(text(NEWS), allowed=("/", "/private"), forbidden=("/news",))},
    }


STORIES = (
    Story(
        "rules on a 404 page",
        "they are not read",
        "Google, 4xx",
        DOC_4XX,
        **open_to_all(Answer(NOTHING.encode(), 404, {"Content-Type": "text/plain"})),
    ),
    Story(
        "login (401)",
        "the same for any other 4xx except 429",
        "Google, 4xx",
        DOC_4XX,
        **open_to_all(Answer(b"who are you", 401)),
    ),
    Story(
        "no content (204)",
        "an empty file",
        "RFC 9309 §2.3.1.1",
        SUCCESS,
        **open_to_all(Answer(status=204)),
    ),
    Story(
        "too many requests (429)",
        "nothing is fetched for now",
        "Google, 4xx",
        DOC_4XX,
        **broken(body=b"slow down", status=429),
    ),
    Story(
        "rules on a 500 page",
        "they are not read, and nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        UNREACHABLE,
        **broken(body=ALL.encode(), status=500, headers={"Content-Type": "text/plain"}),
    ),
    Story(
        "connection reset",
        "nothing is fetched for now",
        "RFC 9309 §2.3.1.4",
        UNREACHABLE,
        **broken(ends="reset"),
    ),
    Story(
        "connection closed",
        "the same",
        "RFC 9309 §2.3.1.4",
        UNREACHABLE,
        **broken(status=0, ends="close"),
    ),
    Story(
        "refuses connections, then comes back",
        "its robots.txt is asked for before its pages",
        "Google, 5xx",
        DOC_5XX,
        robots=text(PRIVATE),
        opens_later=True,
        doors=("/morning",),
        later_allowed=("/noon", "/evening"),
        later_forbidden=("/private",),
    ),
    Story(
        "incomplete body",
        "the same, although it begins with rules",
        "Google, other errors",
        DOC_ERRORS,
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, ends="close"),
    ),
    Story(
        "broken chunks",
        "the same",
        "Google, other errors",
        DOC_ERRORS,
        **broken(
            body=b"17\r\n" + ALL.encode()[:23] + b"\r\nno number\r\n",
            headers={"Transfer-Encoding": "chunked", "Content-Type": "text/plain"},
            ends="close",
        ),
    ),
    Story(
        "no HTTP",
        "the same",
        "Google, other errors",
        DOC_ERRORS,
        **broken(body=b"220 welcome to our mail server\r\n", status=0, ends="close"),
    ),
    Story(
        "drips",
        "the same for a file that comes byte by byte",
        "Google, other errors",
        DOC_ERRORS,
        **broken(body=ALL.encode(), endless=b"#", pause=0.2),
    ),
    Story(
        "hangs in the body",
        "the same",
        "Google, other errors",
        DOC_ERRORS,
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, endless=b"#", pause=FOR_EVER),
    ),
    Story(
        "redirect loop",
        "as a 404",
        "Google, 3xx",
        DOC_3XX,
        **open_to_all(redirect("/robots.txt")),
    ),
    Story(
        "redirect to nowhere",
        "as a 404",
        "decision, Location",
        "A redirect without a Location leads to no robots.txt, as one that is followed too often.",
        **open_to_all(Answer(status=302)),
    ),
    Story(
        "redirect to a mail address",
        "as a 404",
        "decision, Location",
        "A redirect to what can't be fetched leads to no robots.txt, as one that is followed too often.",
        **open_to_all(redirect("mailto:webmaster@example.com")),
    ),
    Story(
        "redirect from http to https",
        "the rules hold for http",
        "RFC 9309 §2.3.1.2",
        REDIRECTS,
        robots=redirect("{beside}/robots-of-https"),
        allowed=("/", "/news"),
        forbidden=("/private",),
        beside={
            "https": other(text(ALL), doors=(), files={"/robots-of-https": text(PRIVATE)})
        },
    ),
    Story(
        "redirect to a host that is down",
        "nothing is fetched for now from the host that was asked first",
        "RFC 9309 §2.3.1.4",
        UNREACHABLE,
        **broken(redirect("{beside}/robots-of-all")),
        beside={
            "port": other(text(ALL), doors=(), files={"/robots-of-all": Answer(b"overloaded", 503)})
        },
    ),
    Story(
        "redirect to a host without the file",
        "as a 404",
        "Google, 4xx",
        DOC_4XX,
        **open_to_all(redirect("{beside}/robots-of-all")),
        beside={
            "port": other(text(ALL), doors=(), files={"/robots-of-all": Answer(b"no such file", 404)})
        },
    ),
    Story(
        "meta refresh for robots.txt",
        "it is not followed",
        "Google, 3xx",
        DOC_LOGICAL,
        **open_to_all(
            html("", '<meta http-equiv="refresh" content="0; url=/robots-of-frames">'),
            files={"/robots-of-frames": text(NOTHING)},
            not_robots=("/robots-of-frames",),
        ),
    ),
    Story(
        "who asks for robots.txt",
        "its request names the crawler as those of pages do",
        "RFC 9309 §2.2.1",
        SUBSTRING,
        **rules(PRIVATE.encode()),
        names_itself=True,
    ),
    Story("two ports", "each has its robots.txt", "Google, location", DOC_LOCATION, **two_origins("port")),
    Story(
        "http and https",
        "the same for schemes, on one port",
        "Google, location",
        DOC_LOCATION,
        **two_origins("https"),
    ),
    Story(
        "a name and its address",
        "the same for hosts, on one port",
        "Google, location",
        DOC_LOCATION,
        **two_origins("localhost"),
    ),
    Story(
        "page redirects to another origin",
        "whose robots.txt is asked for first",
        "RFC 9309 §2.3",
        SERVICE,
        robots=text(PRIVATE),
        files={"/": redirect("{beside}/news")},
        allowed=("/",),
        beside={"port": other(text(NOTHING), doors=(), forbidden=("/news",))},
    ),
    Story(
        "a rule at 500 KiB",
        "so much is read at least",
        "RFC 9309 §2.5",
        LIMIT,
        **rules(filled(b"Disallow: /private\n")),
    ),
    Story(
        "gzip",
        "a file that is sent compressed",
        "RFC 9309 §2.3.1.1",
        SUCCESS,
        robots=Answer(
            gzip.compress(PRIVATE.encode()),
            headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"},
        ),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
)  # fmt: skip
