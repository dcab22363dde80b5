"""Cases of other records: sitemaps, delays, preferences about use."""

# A case is a line.
# fmt: off
from .writing import Book, joined, star

BOOK = Book()
S = "https://example.com/sitemap.xml"

c = BOOK.clause("doc-sitemap")
for name, asks, body, sitemaps in [
    ("one", "A sitemap is found.", joined(f"sitemap: {S}"), [S]),
    ("none", "A file without sitemaps has none.", star("disallow: /a"), []),
    ("several", "Any number of sitemaps is found, in their order.", joined(f"sitemap: {S}", "sitemap: https://example.com/b.xml", "sitemap: https://example.com/a.xml"), [S, "https://example.com/b.xml", "https://example.com/a.xml"]),
    ("another-host", "A sitemap may be on another host.", joined("sitemap: https://cdn.example.org/other-sitemap.xml"), ["https://cdn.example.org/other-sitemap.xml"]),
    ("not-encoded", "A sitemap's URL need not be encoded, and stays as it is.", joined("sitemap: https://ja.example.org/テスト-サイトマップ.xml"), ["https://ja.example.org/テスト-サイトマップ.xml"]),
    ("case", "The value of a sitemap keeps its case.", joined("SITEMAP: https://example.com/SiteMap.XML"), ["https://example.com/SiteMap.XML"]),
    ("in-group", "A sitemap in a group of another crawler is for all.", joined("user-agent: otherbot", "disallow: /kale", f"sitemap: {S}"), [S]),
    ("between-agents", "A sitemap between user-agent lines is for all.", joined("user-agent: a", f"sitemap: {S}", "user-agent: b", "disallow: /"), [S]),
    ("comment", "A comment behind a sitemap is not part of it.", joined(f"sitemap: {S} # all pages"), [S]),
    ("blanks", "Blanks around a sitemap are not part of it.", joined(f"  sitemap :  {S}  "), [S]),
    ("commented-out", "A sitemap that is commented out is none.", joined(f"# sitemap: {S}"), []),
    ("cr", "CR is no part of a sitemap.", f"sitemap: {S}\ruser-agent: *\r", [S]),
    ("disallowed", "A sitemap is found though everything is disallowed.", star("disallow: /", f"sitemap: {S}"), [S]),
]:
    c(name, asks, body, "/", sitemaps=sitemaps)

c = BOOK.clause("own-crawl-delay")
for name, asks, body, delay in [
    ("own", "The delay of the crawler's own group holds.", joined("user-agent: ExampleBot", "crawl-delay: 10", "disallow: /a"), 10),
    ("star", "The delay of * holds for a crawler without a group.", star("crawl-delay: 7"), 7),
    ("decimals", "A delay may have decimals.", star("crawl-delay: 2.5"), 2.5),
    ("not-of-star", "A crawler with a group of its own doesn't have the delay of *.", joined("user-agent: *", "crawl-delay: 10", "user-agent: ExampleBot", "disallow: /a"), None),
    ("not-of-others", "A delay holds for no other crawler.", joined("user-agent: OtherBot", "crawl-delay: 10"), None),
    ("longest", "Of two delays the longest holds.", star("crawl-delay: 3", "crawl-delay: 9"), 9),
    ("combined", "The delay of the second of two groups of one crawler holds.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot", "crawl-delay: 4"), 4),
    ("words", "A delay that is no number asks for nothing.", star("crawl-delay: soon"), None),
    ("negative", "A delay below 0 asks for nothing.", star("crawl-delay: -5"), None),
    ("none", "A group without a delay asks for nothing.", star("disallow: /a"), None),
    ("comment", "A comment behind a delay is not part of it.", star("crawl-delay: 6 # seconds"), 6),
    ("rate", "A page each five seconds is a delay of five.", star("request-rate: 1/5"), 5),
    ("rate-minutes", "Two pages a minute are a delay of 30 seconds.", star("request-rate: 2/1m"), 30),
    ("directly-above", "A delay is for the user-agent lines right above it alone.", joined("user-agent: OtherBot", "crawl-delay: 10", "user-agent: ExampleBot", "disallow: /a"), None),
]:
    c(name, asks, body, "/", crawl_delay=delay)

U = "content-usage: "
c = BOOK.clause("own-content-usage")
for name, asks, lines, path, usage in [
    ("whole-site", "A statement without a path is for the whole site.", [f"{U}train-ai=n"], "/x", {"train-ai": "n"}),
    ("longer-path", "The longest path that matches decides.", [f"{U}train-ai=n", f"{U}/ai-ok/ train-ai=y"], "/ai-ok/t", {"train-ai": "y"}),
    ("as-a-whole", "The longest path decides as a whole: other categories are unknown.", [f"{U}train-ai=n", f"{U}/a/ search=y"], "/a/x", {"search": "y"}),
    ("root-path", "/ is longer than no path.", [f"{U}train-ai=n", f"{U}/ train-ai=y"], "/x", {"train-ai": "y"}),
    ("equal-paths", "Lines of equal paths are combined, and n is preferred to y.", [f"{U}/b/ train-ai=y, search=y", f"{U}/b/ train-ai=n"], "/b/x", {"train-ai": "n", "search": "y"}),
    ("wildcard", "Paths have * and $.", [f"{U}/*.pdf$ train-ai=n", f"{U}search=y"], "/f/a.pdf", {"train-ai": "n"}),
    ("empty", "A path alone says nothing.", [f"{U}/blog/"], "/blog/x", {}),
    ("two-words", "A statement that doesn't parse says nothing.", [f"{U}/r/ train-ai=n search=n"], "/r/x", {}),
    ("last-of-key", "A bare key is no y, though one stood before.", [f"{U}train-ai=y, train-ai"], "/x", {}),
    ("upper-case", "Keys are in lower case.", [f"{U}Train-AI=n"], "/x", {}),
    ("trailing-comma", "A comma at the end makes the statement invalid.", [f"{U}train-ai=n,"], "/x", {}),
    ("parameters", "Parameters are ignored.", [f"{U}train-ai=n;x=1, search=y"], "/x", {"train-ai": "n", "search": "y"}),
    ("disallowed", "A path that is disallowed has no preferences.", [f"{U}train-ai=n", "disallow: /never/"], "/never/t", {}),
]:
    c(name, asks, star(*lines), path, content_usage=usage)
c("not-of-star", "A crawler with a group of its own doesn't have the preferences of *.", joined("user-agent: *", f"{U}train-ai=n", "disallow: /p", "user-agent: ExampleBot", "allow: /"), "/x", content_usage={})
c("between-agents", "A line between user-agent lines is for the crawlers of both.", joined("user-agent: OtherBot", f"{U}train-ai=n", "user-agent: ExampleBot", "allow: /"), "/x", content_usage={"train-ai": "n"})

U = "content-signal: "
c = BOOK.clause("own-content-signal")
for name, asks, lines, signal in [
    ("one", "A signal is found.", [f"{U}ai-train=no"], {"ai-train": "no"}),
    ("three", "Signals are separated by commas.", [f"{U}search=yes, ai-input=yes, ai-train=no"], {"search": "yes", "ai-input": "yes", "ai-train": "no"}),
    ("case", "Names are read without case.", [f"{U}Search=yes"], {"search": "yes"}),
    ("unreadable", "A pair that can't be read is skipped.", [f"{U}search, ai-train=no"], {"ai-train": "no"}),
    ("restrictive", "Of equal lines the more restrictive holds.", [f"{U}ai-train=yes", f"{U}ai-train=no"], {"ai-train": "no"}),
]:
    c(name, asks, star(*lines), "/x", content_signal=signal)
c("merged", "The signals of two groups of * are combined.", joined("user-agent: *", f"{U}search=yes", "allow: /", "user-agent: *", "disallow: /a"), "/x", content_signal={"search": "yes"})
