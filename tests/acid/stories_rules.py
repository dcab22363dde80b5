"""Stories of how a robots.txt is read, and of which URLs its rules are for."""

from __future__ import annotations

from .quotes import (
    COMBINED,
    DOC_FORMAT,
    DOC_NOT_UTF_8,
    ENCODED,
    END_OF_LINE,
    EQUIVALENT,
    FIRST_OCTET,
    GROUP,
    MATCH,
)
from .story import ALL, PRIVATE, TAGS, Answer, Story, html, redirect, rules, text


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
STORIES = (
    Story(
        "page redirects to what is disallowed",
        "a redirect of a page is as a link",
        "RFC 9309 §2.2.2",
        MATCH,
        **to_private(redirect("/private")),
    ),
    Story(
        "page refreshes to what is disallowed",
        "the same for a meta refresh",
        "RFC 9309 §2.2.2",
        MATCH,
        **to_private(html("", '<meta http-equiv="refresh" content="0; url=/private">')),
    ),
    Story(
        "page embeds what is disallowed",
        "images, frames and scripts are URIs, too",
        "RFC 9309 §2.2.2",
        MATCH,
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
    Story(
        "byte order mark",
        "it is ignored",
        "Google, file format",
        DOC_FORMAT,
        **rules(b"\xef\xbb\xbf" + PRIVATE.encode()),
    ),
    Story(
        "not UTF-8",
        "the lines that are valid count",
        "Google, file format",
        DOC_NOT_UTF_8,
        **rules(b"# caf\xe9\nUser-agent: *\nDisallow: /caf\xe9\nDisallow: /private\n"),
    ),
    Story(
        "lines end with CR",
        "as with LF",
        "RFC 9309 §2.2",
        END_OF_LINE,
        **rules(PRIVATE.replace("\n", "\r").encode()),
    ),
    Story(
        "two groups for us",
        "they are one",
        "RFC 9309 §2.2.1",
        COMBINED,
        robots=text(
            "User-agent: DemoBot\nDisallow: /one\n\nUser-agent: *\nDisallow: /\n\n"
            "User-agent: DemoBot\nDisallow: /two\n"
        ),
        allowed=("/", "/news"),
        forbidden=("/one", "/two"),
    ),
    Story(
        "a group for half of our name",
        "is not ours",
        "RFC 9309 §2.2.1",
        GROUP,
        robots=text("User-agent: HalfBot\nDisallow: /news\n\nUser-agent: *\nDisallow: /private\n"),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "as specific",
        "Allow wins over a Disallow of the same length",
        "RFC 9309 §2.2.2",
        EQUIVALENT,
        robots=text("User-agent: *\nDisallow: /news\nDisallow: /private\nAllow: /news\n"),
        allowed=("/", "/news"),
        forbidden=("/private",),
    ),
    Story(
        "spellings of a URL",
        "escapes are compared in one form",
        "RFC 9309 §2.2.2",
        ENCODED,
        robots=text("User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%7Ejoe\nDisallow: /straße\n"),
        links=("/caf\u00e9", "/caf%c3%a9", "/~joe", "/%7ejoe", "/stra%C3%9Fe", "/stra\u00dfe", "/Caf%C3%A9"),
        allowed=("/", "/Caf\u00e9"),
        forbidden=("/caf\u00e9", "/~joe", "/stra\u00dfe"),
    ),
    Story(
        "odd links",
        "fragments, dots, and what is in a query",
        "RFC 9309 §2.2.2",
        FIRST_OCTET,
        robots=text(PRIVATE),
        links=("/private#top", "/news/../private/a", "./private?", "/PRIVATE", "/?in=/private"),
        allowed=("/", "/PRIVATE", "/?in=/private"),
        forbidden=("/private", "/private/a", "/news/../private/a", "/private?"),
    ),
    Story(
        "nofollow",
        "links of such a page are not followed",
        "decision, robots meta tag",
        "Tags are for search engines; a crawler that obeys them says so.",
        **to_secret(html(SECRET, '<meta name="robots" content="nofollow">')),
    ),
    Story(
        "nofollow in a header",
        "the same",
        "decision, X-Robots-Tag",
        "Tags are for search engines; a crawler that obeys them says so.",
        **to_secret(html(SECRET, X_Robots_Tag="nofollow")),
    ),
)  # fmt: skip
