"""Cases of matching: which pattern matches which URL, and which rule decides."""

# A case is a line.
# fmt: off
from .writing import (
    ALLOWED,
    DISALLOWED,
    Book,
    Repeat,
    joined,
    matches,
    matches_not,
    star,
)

BOOK = Book()

c = BOOK.clause("rfc-2.2.2-case")
matches_not(c, "first-letter", "/fish", "/Fish", "the case of a letter counts")
matches_not(c, "in-query", "/a?Key=", "/a?key=1", "case counts in the query")
matches_not(c, "behind-star", "/*.PHP", "/a.php", "case counts behind a *")
c("allow", "The case of an allow counts.", star("disallow: /", "allow: /Public"), "/public", DISALLOWED, 2)

c = BOOK.clause("rfc-2.2.2-first-octet")
matches_not(c, "inside", "/fish", "/catfish/fish", "it begins with the path")
matches_not(c, "in-query", "/fish", "/?id=/fish", "it begins with the path")
matches_not(c, "two-slashes", "/fish", "//fish", "the second octet differs")
matches(c, "two-slashes-in-both", "//fish", "//fish", "slashes are compared as they are")
matches_not(c, "two-slashes-in-rule", "/a//b", "/a/b", "slashes are compared as they are")

c = BOOK.clause("rfc-2.2.2-end-of-path")
matches(c, "longer-name", "/a", "/abc", "the path of the rule is at its end before a difference")
matches(c, "with-query", "/a", "/a?b=c")
matches(c, "directory", "/a/", "/a/b")
matches_not(c, "directory-itself", "/a/", "/a", "the rule is not at its end")
matches_not(c, "query-missing", "/a?b", "/a", "the rule is not at its end")
matches_not(c, "dot-is-no-wildcard", "/a.b", "/axb", "a dot is a character")
matches_not(c, "plus-is-no-wildcard", "/a+", "/aaa", "a plus is a character")
matches_not(c, "brackets-are-no-class", "/[ab]", "/a", "brackets are characters")
matches_not(c, "question-mark-is-no-wildcard", "/ab?c", "/ac", "a question mark is a character")
matches_not(c, "alternation", "/(a|b)", "/a", "parentheses are characters")
matches(c, "plus", "/a+b", "/a+b")

c = BOOK.clause("rfc-2.2.2-most-octets")
c("allow-longer", "A longer allow allows a part of what is disallowed.", star("disallow: /a", "allow: /a/b"), "/a/b", ALLOWED, 3)
c("allow-longer-first", "A longer allow allows a part of what is disallowed, also where it is first.", star("allow: /a/b", "disallow: /a"), "/a/b", ALLOWED, 2)
c("disallow-longer", "A longer disallow disallows a part of what is allowed.", star("allow: /a", "disallow: /a/b"), "/a/b", DISALLOWED, 3)
c("disallow-longer-first", "A longer disallow disallows a part of what is allowed, also where it is first.", star("disallow: /a/b", "allow: /a"), "/a/b", DISALLOWED, 2)
c("only-what-matches", "A longer rule that doesn't match doesn't count.", star("allow: /a/b/c/d", "disallow: /a"), "/a/b", DISALLOWED, 3)
c("three-middle", "Of three rules the longest that matches decides, not the longest.", star("allow: /a", "disallow: /a/b", "allow: /a/b/c"), "/a/b/x", DISALLOWED, 3)
c("slash-counts", "A slash at the end is an octet more.", star("allow: /a", "disallow: /a/"), "/a/", DISALLOWED, 3)
c("query-counts", "A query in the rule counts.", star("disallow: /a", "allow: /a?b"), "/a?b=1", ALLOWED, 3)
c("of-pattern", "The octets of the pattern count, not those that a * stands for.", star("allow: /a/", "disallow: /*"), "/a/bcdefgh", ALLOWED, 2, by="longest")
c("not-allow-first", "A shorter allow doesn't win against a longer disallow.", star("allow: /", "allow: /a", "disallow: /a/b"), "/a/b", DISALLOWED, 4)

c = BOOK.clause("rfc-2.2.2-equivalent")
c("allow-last", "Of an allow and a disallow of the same path the allow is used, where it is last.", star("disallow: /a", "allow: /a"), "/a", ALLOWED, 3)
c("allow-first", "Of an allow and a disallow of the same path the allow is used, where it is first.", star("allow: /a", "disallow: /a"), "/a", ALLOWED, 2)
c("wildcards", "Equal patterns with * are equivalent, too.", star("disallow: /*.php$", "allow: /*.php$"), "/a.php", ALLOWED, 3)
c("in-two-groups", "Equal rules in two groups that are combined are equivalent, too.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot", "allow: /a"), "/a", ALLOWED, 4, by="combined")
c("escaped", "Rules are equivalent where they differ by an escape of a letter alone.", star("disallow: /ab", "allow: /%61b"), "/ab", ALLOWED, 3, by="decode")
c("disallow-twice", "Two disallows do not outweigh an allow.", star("disallow: /a", "disallow: /a", "allow: /a"), "/a", ALLOWED, 4)

c = BOOK.clause("rfc-2.2.2-duplicates")
c("disallow", "A rule that stands twice is one rule.", star("disallow: /a", "disallow: /a"), "/a", DISALLOWED)
c("allow", "An allow that stands twice is one rule.", star("disallow: /", "allow: /a", "allow: /a"), "/a", ALLOWED)
c("not-longer", "A rule that stands twice is no longer for that.", star("disallow: /a", "disallow: /a", "allow: /ab"), "/ab", ALLOWED, 4)

c = BOOK.clause("rfc-2.2.2-no-match")
c("no-rule-matches", "What no rule matches is allowed.", star("disallow: /a", "disallow: /b"), "/c", ALLOWED, None)
c("only-allow", "What no allow matches is allowed, too.", star("allow: /a"), "/b", ALLOWED, None)
c("no-rules", "A group without rules allows everything.", "user-agent: *\n", "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.2.2-robots-txt")
c("all-disallowed", "/robots.txt is allowed where everything is disallowed.", star("disallow: /"), "/robots.txt", ALLOWED)
c("endings-disallowed", "/robots.txt is allowed where all that ends with .txt is disallowed.", star("disallow: /*.txt$"), "/robots.txt", ALLOWED)
c("own-group", "/robots.txt is allowed to a crawler whose own group disallows everything.", "user-agent: ExampleBot\ndisallow: /\n", "/robots.txt", ALLOWED)
c("longer-name", "Another file whose name begins with robots.txt is not implicitly allowed.", star("disallow: /"), "/robots.txt.old", DISALLOWED, 2)
c("in-directory", "A robots.txt in a directory is not implicitly allowed.", star("disallow: /"), "/a/robots.txt", DISALLOWED, 2)

c = BOOK.clause("rfc-2.3-name")
c("upper-case", "/ROBOTS.TXT is not robots.txt.", star("disallow: /"), "/ROBOTS.TXT", DISALLOWED, 2)
c("capital", "/Robots.txt is not robots.txt.", star("disallow: /"), "/Robots.txt", DISALLOWED, 2)

c = BOOK.clause("rfc-2.2.3-dollar")
matches(c, "exact", "/a$", "/a")
matches_not(c, "longer", "/a$", "/ab", "$ is the end")
matches_not(c, "below", "/a$", "/a/", "$ is the end")
matches_not(c, "query", "/a$", "/a?b", "$ is the end of the query, too")
matches(c, "query-in-rule", "/a?b$", "/a?b")
matches_not(c, "dollar-in-url", "/a$", "/a$", "the $ of a rule is its end, no character")
matches(c, "behind-star", "/*$", "/a/b?c")
c("standard-example", "The standard's example: an allow that ends exactly there.", star("disallow: /this", "allow: /this/path/exactly$"), "/this/path/exactly", ALLOWED, 3)
c("standard-example-longer", "The standard's example doesn't match anything longer.", star("disallow: /this", "allow: /this/path/exactly$"), "/this/path/exactly/not", DISALLOWED, 2)

c = BOOK.clause("rfc-2.2.3-star")
matches(c, "nothing", "/a*b", "/ab", "* stands for nothing")
matches(c, "slash", "/a*b", "/a/x/y/b", "* stands for slashes, too")
matches(c, "query", "/a*b", "/a?x=b", "* stands for a question mark, too")
matches(c, "behind", "/a*b", "/axbc", "what is behind the pattern doesn't count", by="end-of-path")
matches_not(c, "missing", "/a*b", "/axc")
matches_not(c, "before", "/a*b", "/b/a")
matches_not(c, "two-order", "/a*b*c", "/acb", "the parts come in their order")
matches(c, "two-stars", "/a**b", "/ab", "two stars are as one")
matches(c, "at-start", "*/b", "/a/b", "a pattern may begin with *", by="example-star")
matches(c, "alone", "*", "/a", "* alone is anything", by="example-star")
matches(c, "at-end", "/a*", "/a", "* at the end stands for nothing, too")
matches_not(c, "at-end-needs-slash", "/a/*", "/a")
matches(c, "backtracking", "/*ab$", "/aab", "an early a is not yet the end")
matches(c, "backtracking-twice", "/*ab*cd$", "/abxabcdcd")
matches(c, "overlap", "/*aba$", "/ababa")
matches_not(c, "no-overlap", "/a*a$", "/a", "a character counts once", by="end-of-path")
matches_not(c, "no-overlap-two", "/*ab*ba$", "/xaba", "a character counts once")
matches(c, "query-key", "/*?id=", "/a/b?id=5")
matches(c, "star-in-url", "/a*b", "/a*b", "a * in a URL is a character, for which * stands, too")
matches(c, "directory-anywhere", "/*/private/", "/a/b/private/c")
matches_not(c, "directory-at-root", "/*/private/", "/private/c", "a slash is needed before")
c("standard-example", "The standard's example: an allow with * between.", star("disallow: /this", "allow: /this/*/exactly"), "/this/path/exactly", ALLOWED, 3)

c = BOOK.clause("rfc-5.1-example")
EXAMPLE = joined("User-Agent: *", "Disallow: *.gif$", "Disallow: /example/", "Allow: /publications/", "", "User-Agent: foobot", "Disallow:/", "Allow:/example/page.html", "Allow:/example/allowed.gif", "", "User-Agent: barbot", "User-Agent: bazbot", "Disallow: /example/page.html", "", "User-Agent: quxbot")
for token, path, allowed, line in [
    ("foobot", "/example/page.html", ALLOWED, 8),
    ("foobot", "/example/allowed.gif", ALLOWED, 9),
    ("foobot", "/example/other.gif", DISALLOWED, 7),
    ("foobot", "/publications/", DISALLOWED, 7),
    ("barbot", "/example/page.html", DISALLOWED, 13),
    ("bazbot", "/example/page.html", DISALLOWED, 13),
    ("barbot", "/example/a.gif", ALLOWED, None),
    ("quxbot", "/example/a.gif", ALLOWED, None),
    ("otherbot", "/a.gif", DISALLOWED, 2),
    ("otherbot", "/example/page.html", DISALLOWED, 3),
    ("otherbot", "/publications/a.html", ALLOWED, 4),
    ("otherbot", "/publications/a.gif", ALLOWED, 4),
    ("otherbot", "/other", ALLOWED, None),
]:
    of = {"otherbot": "anyone", "bazbot": "barbot"}.get(token, token)
    # Two rules match it, and the longer one decides.
    by = "longest" if (token, path) == ("otherbot", "/publications/a.gif") else f"example-{of}"
    c(f"{token}{path.replace('/', '-')}", f"In the standard's example {path} is {'allowed' if allowed else 'disallowed'} to {token}.", EXAMPLE, path, allowed, line, tokens=[token], by=by)

c = BOOK.clause("rfc-5.2-example")
LONGEST = joined("User-Agent: foobot", "Allow: /example/page/", "Disallow: /example/page/disallowed.gif")
c("disallowed", "In the standard's example the longer disallow is used.", LONGEST, "/example/page/disallowed.gif", DISALLOWED, 3, tokens=["foobot"])
c("other", "In the standard's example another page is allowed.", LONGEST, "/example/page/other.gif", ALLOWED, 2, tokens=["foobot"])

PATHS = {
    "/": ["/ /a /a/b?c", ""],
    "/*": ["/ /a /a/b?c", ""],
    "/$": ["/", "/a /index.html /?a"],
    "/fish": ["/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything", "/Fish.asp /catfish /?id=fish /desert/fish"],
    "/fish*": ["/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.php?id=anything", "/Fish.asp /catfish /?id=fish /desert/fish"],
    "/fish/": ["/fish/ /fish/?id=anything /fish/salmon.htm", "/fish /fish.html /animals/fish/ /Fish/Salmon.asp"],
    "/*.php": ["/index.php /filename.php /folder/filename.php /folder/filename.php?parameters /folder/any.php.file.html /filename.php/", "/ /windows.PHP"],
    "/*.php$": ["/filename.php /folder/filename.php", "/filename.php?parameters /filename.php/ /filename.php5 /windows.PHP"],
    "/fish*.php": ["/fish.php /fishheads/catfish.php?parameters", "/Fish.PHP"],
}  # fmt: skip
c = BOOK.clause("doc-paths")
GOOGLEBOT = "user-agent: googlebot\ndisallow: {}\n"
for row, (pattern, (matched, others)) in enumerate(PATHS.items(), 1):
    for number, path in enumerate(matched.split(), 1):
        c(f"row-{row}-matches-{number}", f"{pattern} matches {path}.", GOOGLEBOT.format(pattern), path, DISALLOWED, 2, tokens=["googlebot"])
    for number, path in enumerate(others.split(), 1):
        c(f"row-{row}-not-{number}", f"{pattern} does not match {path}.", GOOGLEBOT.format(pattern), path, ALLOWED, None, tokens=["googlebot"])

c = BOOK.clause("doc-rules")
for name, path, allow, disallow, allowed, line in [
    ("longer", "/page", "/p", "/", ALLOWED, 2),
    ("tie", "/folder/page", "/folder", "/folder", ALLOWED, 2),
    ("wildcard-longer", "/page.htm", "/page", "/*.htm", DISALLOWED, 3),
    ("wildcard-tie", "/page.php5", "/page", "/*.ph", ALLOWED, 2),
    ("root", "/", "/$", "/", ALLOWED, 2),
    ("root-only", "/page.htm", "/$", "/", DISALLOWED, 3),
]:
    c(name, f"With allow: {allow} and disallow: {disallow}, {path} is {'allowed' if allowed else 'disallowed'}.", star(f"allow: {allow}", f"disallow: {disallow}"), path, allowed, line)
c("tie-of-wildcards", "Of conflicting patterns with *, of one length, the least restrictive is used.", star("disallow: /*a", "allow: /*b"), "/ab", ALLOWED, 3)
c("tie-disallow-first", "Of rules of one length the least restrictive is used, in either order.", star("disallow: /*.ph", "allow: /page"), "/page.php5", ALLOWED, 3)

c = BOOK.clause("doc-no-path")
c("disallow", "A disallow without path is ignored.", star("allow: /b", "disallow:"), "/a", ALLOWED)
c("allow", "An allow without path is ignored.", star("disallow: /a", "allow:"), "/a", DISALLOWED, 2)
c("alone", "A disallow without path disallows nothing.", star("disallow:"), "/a", ALLOWED)
c("ends-run-of-agents", "A disallow without path ends a run of user-agent lines: the first crawler does not get the rules that follow.", joined("user-agent: ExampleBot", "disallow:", "user-agent: OtherBot", "disallow: /a"), "/a", ALLOWED)
c("of-own-group", "A group with nothing but an empty disallow means that the rules for * do not hold for its crawler.", joined("user-agent: *", "disallow: /", "user-agent: ExampleBot", "disallow:"), "/a", ALLOWED)
c("with-others", "A rule without path between others is ignored.", star("allow: /b", "disallow:", "disallow: /a"), "/a", DISALLOWED, 4)

c = BOOK.clause("doc-recipes")
MEDIA = joined("User-agent: *", "Disallow: /", "", "User-agent: Mediapartners-Google", "Allow: /")
ONE = joined("User-agent: Googlebot-news", "Allow: /", "", "User-agent: *", "Disallow: /")
BUT_ONE = joined("User-agent: Unnecessarybot", "Disallow: /", "", "User-agent: *", "Allow: /")
IMAGE = joined("User-agent: Googlebot-Image", "Disallow: /images/dogs.jpg")
ENDINGS = joined("User-agent: Googlebot", "Disallow: /*.gif$", "Disallow: /*.xls$")
for name, asks, body, path, allowed, line, token in [
    ("all", "Disallow: / disallows a whole site.", star("Disallow: /"), "/any/page", DISALLOWED, 2, "ExampleBot"),
    ("directory", "A directory is disallowed with everything in it.", star("Disallow: /calendar/", "Disallow: /junk/"), "/junk/a/b", DISALLOWED, 3, "ExampleBot"),
    ("directory-others", "Other directories are allowed.", star("Disallow: /calendar/", "Disallow: /junk/"), "/junkyard", ALLOWED, None, "ExampleBot"),
    ("one-allowed", "One crawler is allowed.", ONE, "/a", ALLOWED, 2, "Googlebot-news"),
    ("one-allowed-others", "All others are disallowed.", ONE, "/a", DISALLOWED, 5, "ExampleBot"),
    ("one-blocked", "One crawler is disallowed.", BUT_ONE, "/a", DISALLOWED, 2, "Unnecessarybot"),
    ("one-blocked-others", "All others are allowed.", BUT_ONE, "/a", ALLOWED, 5, "ExampleBot"),
    ("one-page", "One page is disallowed.", star("Disallow: /private_file.html"), "/private_file.html", DISALLOWED, 2, "ExampleBot"),
    ("one-image", "One image is disallowed to a crawler of images.", IMAGE, "/images/dogs.jpg", DISALLOWED, 2, "Googlebot-Image"),
    ("one-image-others", "Other images are allowed to it.", IMAGE, "/images/cats.jpg", ALLOWED, None, "Googlebot-Image"),
    ("all-images", "All images are disallowed to a crawler of images.", "User-agent: Googlebot-Image\nDisallow: /\n", "/a.png", DISALLOWED, 2, "Googlebot-Image"),
    ("file-type", "Files of one type are disallowed.", ENDINGS, "/a/b.gif", DISALLOWED, 2, "Googlebot"),
    ("file-type-query", "A file of that type with a query is allowed: it ends differently.", ENDINGS, "/a/b.gif?c", ALLOWED, None, "Googlebot"),
    ("ending", "URLs that end with .xls are disallowed.", ENDINGS, "/table.xls", DISALLOWED, 3, "Googlebot"),
    ("ending-longer", "URLs that end with .xlsx are allowed.", ENDINGS, "/table.xlsx", ALLOWED, None, "Googlebot"),
    ("advertising", "The crawler of advertisements is allowed.", MEDIA, "/a", ALLOWED, 5, "Mediapartners-Google"),
    ("advertising-others", "All crawlers but that of advertisements are disallowed.", MEDIA, "/a", DISALLOWED, 2, "ExampleBot"),
]:
    c(name, asks, body, path, allowed, line, tokens=[token])

c = BOOK.clause("parser-length")
c("star-at-end", "A * at the end of a pattern counts, though it changes nothing.", star("allow: /a", "disallow: /a*"), "/ab", DISALLOWED, 3)
c("star-at-end-tie", "A * at the end makes a pattern as long as one with a letter there.", star("disallow: /ab", "allow: /a*"), "/ab", ALLOWED, 3)
c("many-stars", "Each of several * counts.", star("allow: /ab", "disallow: /*****"), "/abc", DISALLOWED, 3)

c = BOOK.clause("parser-first-octet")
matches_not(c, "no-slash", "fish", "/fish", "the first octet differs")
matches_not(c, "no-slash-anywhere", "fish/", "/a/fish/", "the first octet differs")
matches_not(c, "full-url", "https://example.com/fish", "/fish", "the first octet of a path is its slash")
matches_not(c, "host", "example.com/fish", "/fish", "a host is no part of the path")
matches_not(c, "query-without-slash", "?id=", "/?id=1", "the first octet differs")
c("allow-no-slash", "An allow without a slash allows nothing.", star("disallow: /", "allow: fish"), "/fish", DISALLOWED, 2)

c = BOOK.clause("parser-dollar")
matches(c, "in-the-middle", "/a$b", "/a$b")
matches_not(c, "no-end-in-the-middle", "/a$b", "/a", "a $ that is not last is a character")
matches(c, "two", "/a$$", "/a$", "the first of two is a character")
matches_not(c, "two-longer", "/a$$", "/a$b", "the last of two is the end")
matches(c, "before-star", "/a$*", "/a$b", "a $ before a * is a character")
matches_not(c, "no-end-before-star", "/a$*", "/a", "a $ before a * is a character")
matches_not(c, "alone", "$", "/", "a pattern that is $ alone begins with no slash")

c = BOOK.clause("parser-url")
for name, asks, pattern, url, allowed in [
    ("no-path", "A URL without a path has the path /.", "/$", "https://example.com", DISALLOWED),
    ("query-without-path", "A query right behind the host has / before it.", "/?a", "https://example.com?a=b", DISALLOWED),
    ("fragment", "A fragment is no part of what is matched.", "/a$", "https://example.com/a#b", DISALLOWED),
    ("fragment-of-query", "A fragment behind a query is no part of what is matched.", "/a?b$", "https://example.com/a?b#c", DISALLOWED),
    ("fragment-only", "A fragment behind the host leaves the path /.", "/$", "https://example.com/#/a", DISALLOWED),
    ("rule-of-fragment", "A rule does not match a fragment.", "/b", "https://example.com/a#/b", ALLOWED),
    ("parameters", "Parameters are a part of what is matched.", "/a;b$", "https://example.com/a;b", DISALLOWED),
    ("parameters-count", "Parameters count before the end.", "/a$", "https://example.com/a;b", ALLOWED),
    ("url-in-query", "A URL in the query leaves the path before it.", "/a?", "https://example.com/a?u=https://example.org/b", DISALLOWED),
    ("url-in-query-is-no-path", "A URL in the query is not the one that is matched.", "/b", "https://example.com/a?u=https://example.org/b", ALLOWED),
    ("slashes-in-query", "Slashes in the query are no path.", "/a?u=/b/c$", "https://example.com/a?u=/b/c", DISALLOWED),
    ("port", "A port is no part of the path.", "/a", "https://example.com:8443/a", DISALLOWED),
]:
    c(name, asks, star(f"disallow: {pattern}"), url, allowed, 2 if not allowed else None)

c = BOOK.clause("parser-index-file")
INDEX = star("disallow: /", "allow: /a/index.html")
c("directory", "An allow of index.html allows its directory.", INDEX, "/a/", ALLOWED, 3)
c("file", "An allow of index.html allows the file.", INDEX, "/a/index.html", ALLOWED, 3)
c("below", "An allow of index.html allows nothing else there.", INDEX, "/a/b", DISALLOWED, 2)
c("without-slash", "An allow of index.html doesn't allow the directory without its slash.", INDEX, "/a", DISALLOWED, 2)
c("query", "An allow of index.html doesn't allow the directory with a query.", INDEX, "/a/?b", DISALLOWED, 2)
c("htm", "An allow of index.htm allows its directory.", star("disallow: /", "allow: /a/index.htm"), "/a/", ALLOWED, 3)
c("root", "An allow of /index.html allows the root.", star("disallow: /", "allow: /index.html"), "/", ALLOWED, 3)
c("dollar", "An allow of index.html$ allows its directory.", star("disallow: /", "allow: /a/index.html$"), "/a/", ALLOWED, 3)
c("php", "An allow of index.php doesn't allow its directory.", star("disallow: /", "allow: /a/index.php"), "/a/", DISALLOWED, 2)
c("disallow", "A disallow of index.html doesn't disallow its directory.", star("disallow: /a/index.html"), "/a/", ALLOWED, None)
c("longer-disallow", "A disallow that is longer than the directory and $ decides.", star("allow: /a/index.html", "disallow: /a/**$"), "/a/", DISALLOWED, 3)
c("not-the-beginning", "A last segment that only has index.htm in it is another file.", star("disallow: /", "allow: /a/myindex.html"), "/a/", DISALLOWED, 2)

c = BOOK.clause("own-first-of-equals")
c("allows", "Of two allows of one length the first is shown.", star("disallow: /", "allow: /ab", "allow: /*b"), "/ab", ALLOWED, 3)
c("allows-the-other-way", "Of two allows of one length the first is shown, whichever has a *.", star("disallow: /", "allow: /*b", "allow: /ab"), "/ab", ALLOWED, 3)
c("disallows", "Of two disallows of one length the first is shown.", star("disallow: /*b", "disallow: /ab"), "/ab", DISALLOWED, 2)

c = BOOK.clause("own-effort")
for name, asks, pattern, repeat, path, allowed in [
    ("many-stars", "A pattern of 30 times *a is matched in time.", "/*a*b", Repeat(25, 27, 30), "/" + "a" * 120, ALLOWED),
    ("many-stars-end", "A pattern of 30 times *a and $ is matched in time.", "/*a$", Repeat(25, 27, 30), "/" + "a" * 120 + "b", ALLOWED),
    ("stars-only", "A pattern of a thousand stars is matched in time.", "/*b$", Repeat(25, 26, 1_000), "/" + "a" * 120, ALLOWED),
    ("long-path", "A pattern of 10 times *a* is matched in time against a long path.", "/*a*b", Repeat(25, 28, 10), "/" + "a" * 2_000, ALLOWED),
    ("long-literal", "A pattern of 10,000 characters is matched in time.", "/a*b", Repeat(25, 26, 10_000), "/" + "a" * 2_000, ALLOWED),
]:
    c(name, asks, star(f"disallow: {pattern}"), path, allowed, None, repeat=repeat)
c("many-rules", "A file of 20,000 patterns is matched in time.", star("disallow: /*x*y", "disallow: /a"), "/a", DISALLOWED, 20_002, repeat=Repeat(14, 30, 20_000))
