"""All stories of the acid test, in the order of its tables: first those of the demonstration web."""

import gzip

from . import quotes, stories_of_the_demo
from .story import (
    ALL,
    FOR_EVER,
    NOTHING,
    POLITENESS,
    PRIVATE,
    TAGS,
    Answer,
    Story,
    broken,
    html,
    open_to_all,
    other,
    private,
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
    beside = other(text(NEWS), allowed=("/", "/private"), forbidden=("/news",))
    return {**private(text(PRIVATE)), "beside": {where: beside}}


def moved(status, words):
    """A robots.txt that redirects to a host where another answer is."""
    return {"port": other(text(ALL), doors=(), files={"/robots-of-all": Answer(words, status)})}


def to_private(page: Answer) -> dict[str, object]:
    """A page that leads, by itself or not, to one that is disallowed."""
    return {
        "robots": text(PRIVATE),
        "files": {"/": page},
        "allowed": ("/",),
        "forbidden": ("/private",),
    }


def to_secret(page: Answer) -> dict[str, object]:
    """A page whose tags forbid to follow its link."""
    return {
        "kind": TAGS,
        "robots": text(ALL),
        "files": {"/": page},
        "allowed": ("/",),
        "forbidden": ("/secret",),
    }


SECRET = '<a href="/secret">here</a>'
MANY = tuple(f"/page/{number}" for number in range(1, 21))
NO_DOCUMENT = (
    "decision, Crawl-delay",
    "In no document; sites write it, and mean seconds between two requests.",
)
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


# How robots.txt is fetched, and what no answer means.
FETCHING = (
    Story("rules on a 404 page", "they are not read", *quotes.DOC_4XX,
        **open_to_all(Answer(NOTHING.encode(), 404, {"Content-Type": "text/plain"}))),
    Story("login (401)", "the same for any other 4xx except 429", *quotes.DOC_4XX,
        **open_to_all(Answer(b"who are you", 401))),
    Story("no content (204)", "an empty file", *quotes.SUCCESS, **open_to_all(Answer(status=204))),
    Story("too many requests (429)", "nothing is fetched for now", *quotes.DOC_4XX,
        **broken(body=b"slow down", status=429)),
    Story("rules on a 500 page", "they are not read, and nothing is fetched for now", *quotes.UNREACHABLE,
        **broken(body=ALL.encode(), status=500, headers={"Content-Type": "text/plain"})),
    Story("connection reset", "nothing is fetched for now", *quotes.UNREACHABLE, **broken(ends="reset")),
    Story("connection closed", "the same", *quotes.UNREACHABLE, **broken(status=0, ends="close")),
    Story("refuses connections, then comes back", "its robots.txt is asked for before its pages",
        *quotes.DOC_5XX,
        robots=text(PRIVATE), opens_later=True, doors=("/morning",),
        later_allowed=("/noon", "/evening"), later_forbidden=("/private",)),
    Story("incomplete body", "the same, although it begins with rules", *quotes.DOC_ERRORS,
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, ends="close")),
    Story("broken chunks", "the same", *quotes.DOC_ERRORS,
        **broken(body=b"17\r\n" + ALL.encode()[:23] + b"\r\nno number\r\n", ends="close",
            headers={"Transfer-Encoding": "chunked", "Content-Type": "text/plain"})),
    Story("no HTTP", "the same", *quotes.DOC_ERRORS,
        **broken(body=b"220 welcome to our mail server\r\n", status=0, ends="close")),
    Story("drips", "the same for a file that comes byte by byte", *quotes.DOC_ERRORS,
        **broken(body=ALL.encode(), endless=b"#", pause=0.2)),
    Story("hangs in the body", "the same", *quotes.DOC_ERRORS,
        **broken(body=ALL.encode(), headers={"Content-Length": "1000"}, endless=b"#", pause=FOR_EVER)),
    Story("redirect loop", "as a 404", *quotes.DOC_3XX, **open_to_all(redirect("/robots.txt"))),
    Story("redirect to nowhere", "as a 404", "decision, Location",
        "A redirect without a Location leads to no robots.txt, as one that is followed too often.",
        **open_to_all(Answer(status=302))),
    Story("redirect to a mail address", "as a 404", "decision, Location",
        "A redirect to what can't be fetched leads to no robots.txt, as one that is followed too often.",
        **open_to_all(redirect("mailto:webmaster@example.com"))),
    Story("redirect from http to https", "the rules hold for http", *quotes.REDIRECTS,
        **private(redirect("{beside}/robots-of-https")),
        beside={"https": other(text(ALL), doors=(), files={"/robots-of-https": text(PRIVATE)})}),
    Story("redirect to a host that is down",
        "nothing is fetched for now from the host that was asked first", *quotes.UNREACHABLE,
        **broken(redirect("{beside}/robots-of-all")),
        beside=moved(503, b"overloaded")),
    Story("redirect to a host without the file", "as a 404", *quotes.DOC_4XX,
        **open_to_all(redirect("{beside}/robots-of-all")),
        beside=moved(404, b"no such file")),
    Story("meta refresh for robots.txt", "it is not followed", *quotes.DOC_LOGICAL,
        **open_to_all(html("", '<meta http-equiv="refresh" content="0; url=/robots-of-frames">')),
        files={"/robots-of-frames": text(NOTHING)}, not_robots=("/robots-of-frames",)),
    Story("who asks for robots.txt", "its request names the crawler as those of pages do",
        *quotes.SUBSTRING,
        **rules(PRIVATE.encode()), names_itself=True),
    Story("two ports", "each has its robots.txt", *quotes.DOC_LOCATION, **two_origins("port")),
    Story("http and https", "the same for schemes, on one port", *quotes.DOC_LOCATION,
        **two_origins("https")),
    Story("a name and its address", "the same for hosts, on one port", *quotes.DOC_LOCATION,
        **two_origins("localhost")),
    Story("page redirects to another origin", "whose robots.txt is asked for first", *quotes.SERVICE,
        robots=text(PRIVATE), files={"/": redirect("{beside}/news")}, allowed=("/",),
        beside={"port": other(text(NOTHING), doors=(), forbidden=("/news",))}),
    Story("a rule at 500 KiB", "so much is read at least", *quotes.LIMIT,
        **rules(filled(b"Disallow: /private\n"))),
    Story("gzip", "a file that is sent compressed", *quotes.SUCCESS,
        **private(Answer(gzip.compress(PRIVATE.encode()),
            headers={"Content-Type": "text/plain", "Content-Encoding": "gzip"}))),
)  # fmt: skip
# How a robots.txt is read, and which URLs its rules are for.
RULES = (
    Story("page redirects to what is disallowed", "a redirect of a page is as a link", *quotes.MATCH,
        **to_private(redirect("/private"))),
    Story("page refreshes to what is disallowed", "the same for a meta refresh", *quotes.MATCH,
        **to_private(html("", '<meta http-equiv="refresh" content="0; url=/private">'))),
    Story("page embeds what is disallowed", "images, frames and scripts are URIs, too", *quotes.MATCH,
        robots=text(PRIVATE),
        files={"/": html('<img src="/private/a.png"><iframe src="/private/b"></iframe>'
            '<script src="/private/c.js"></script><script>fetch("/private/d")</script>')},
        allowed=("/",), forbidden=("/private/a.png", "/private/b", "/private/c.js", "/private/d")),
    Story("byte order mark", "it is ignored", *quotes.DOC_FORMAT,
        **rules(b"\xef\xbb\xbf" + PRIVATE.encode())),
    Story("not UTF-8", "the lines that are valid count", *quotes.DOC_NOT_UTF_8,
        **rules(b"# caf\xe9\nUser-agent: *\nDisallow: /caf\xe9\nDisallow: /private\n")),
    Story("lines end with CR", "as with LF", *quotes.END_OF_LINE,
        **rules(PRIVATE.replace("\n", "\r").encode())),
    Story("two groups for us", "they are one", *quotes.COMBINED,
        robots=text("User-agent: DemoBot\nDisallow: /one\n\nUser-agent: *\nDisallow: /\n\n"
            "User-agent: DemoBot\nDisallow: /two\n"),
        allowed=("/", "/news"), forbidden=("/one", "/two")),
    Story("a group for half of our name", "is not ours", *quotes.GROUP,
        **private(text("User-agent: HalfBot\nDisallow: /news\n\nUser-agent: *\nDisallow: /private\n"))),
    Story("as specific", "Allow wins over a Disallow of the same length", *quotes.EQUIVALENT,
        **private(text("User-agent: *\nDisallow: /news\nDisallow: /private\nAllow: /news\n"))),
    Story("spellings of a URL", "escapes are compared in one form", *quotes.ENCODED,
        robots=text("User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%7Ejoe\nDisallow: /straße\n"),
        links=("/caf\u00e9", "/caf%c3%a9", "/~joe", "/%7ejoe", "/stra%C3%9Fe", "/stra\u00dfe", "/Caf%C3%A9"),
        allowed=("/", "/Caf\u00e9"), forbidden=("/caf\u00e9", "/~joe", "/stra\u00dfe")),
    Story("odd links", "fragments, dots, and what is in a query", *quotes.FIRST_OCTET,
        robots=text(PRIVATE),
        links=("/private#top", "/news/../private/a", "./private?", "/PRIVATE", "/?in=/private"),
        allowed=("/", "/PRIVATE", "/?in=/private"),
        forbidden=("/private", "/private/a", "/news/../private/a", "/private?")),
    Story("nofollow", "links of such a page are not followed", "decision, robots meta tag",
        "Tags are for search engines; a crawler that obeys them says so.",
        **to_secret(html(SECRET, '<meta name="robots" content="nofollow">'))),
    Story("nofollow in a header", "the same", "decision, X-Robots-Tag",
        "Tags are for search engines; a crawler that obeys them says so.",
        **to_secret(html(SECRET, X_Robots_Tag="nofollow"))),
)  # fmt: skip
# How often a host is asked: no rule of robots.txt, but what its people complain of.
POLITE = (
    Story("503 with Retry-After", "robots.txt is not asked for earlier", *quotes.RETRY_AFTER_503,
        kind=POLITENESS, robots=Answer(b"overloaded", 503, {"Retry-After": "2"}),
        robots_later=text(PRIVATE), doors=("/morning",), forbidden=("/morning",),
        later_allowed=("/noon",), later_forbidden=("/private",), robots_gap=2),
    Story("page with 429 and Retry-After", "the host is not asked earlier", *quotes.TOO_MANY,
        **busy(Answer(b"slow down", 429, {"Retry-After": "4"}))),
    Story("page with 503 and Retry-After", "the same", *quotes.RETRY_AFTER,
        **busy(Answer(b"overloaded", 503, {"Retry-After": "4"}))),
    Story("crawl delay", "a second between requests", *NO_DOCUMENT,
        kind=POLITENESS, robots=DELAY, allowed=("/", "/one", "/two"), gap=1),
    Story("crawl delay and redirects", "what a page redirects to is a request of its host, too",
        *NO_DOCUMENT,
        kind=POLITENESS, robots=DELAY,
        files={"/one": redirect("/two"), "/three": redirect("/four")}, links=("/one", "/three"),
        allowed=("/", "/one", "/two", "/three", "/four"), gap=1),
    Story("twenty pages", "robots.txt is fetched once", "decision, caching",
        "Its max-age is a day.",
        kind=POLITENESS, robots=text(PRIVATE, Cache_Control="max-age=86400"), allowed=("/", *MANY),
        forbidden=("/private",), once=True),
)  # fmt: skip
ACID = (*stories_of_the_demo.STORIES, *FETCHING, *RULES, *POLITE)
CRAWL_ENDS = {
    "story": "the crawl ends",
    "shows": "no site keeps it from that",
    "clause": "decision, time limits",
    "by": "A crawl of sites that hang, drip or never end comes to its end.",
    "kind": "robots.txt",
    "needs": "",
}
"""What is asked with all stories at once."""
