"""Cases of percent-encoding: which spellings of a character are the same."""

# A case is a line.
# fmt: off
from .writing import ALLOWED, DISALLOWED, Book, matches, matches_not, star

BOOK = Book()

c = BOOK.clause("rfc-2.2.3-verbatim")
matches(c, "star", "/path/file-with-a-%2A.html", "/path/file-with-a-*.html")
matches_not(c, "star-is-none", "/path/file-with-a-%2A.html", "/path/file-with-a-x.html", "an escaped * stands for itself")
matches(c, "star-escaped-in-url", "/path/file-with-a-%2A.html", "/path/file-with-a-%2A.html")
matches(c, "dollar", "/path/foo-%24", "/path/foo-$")
matches_not(c, "dollar-is-none", "/path/foo-%24", "/path/foo-", "an escaped $ stands for itself")
matches(c, "dollar-goes-on", "/path/foo-%24", "/path/foo-$/bar", "an escaped $ is no end", by="end-of-path")
matches(c, "dollar-escaped-in-url", "/path/foo-%24", "/path/foo-%24")
matches(c, "dollar-and-end", "/path/foo-%24$", "/path/foo-$", by="dollar")
matches_not(c, "dollar-and-end-longer", "/path/foo-%24$", "/path/foo-$bar", by="dollar")

c = BOOK.clause("rfc-2.2.2-encode")
matches(c, "rule-raw", "/é", "/%C3%A9", "characters beyond ASCII are escaped before they are compared")
matches(c, "url-raw", "/%C3%A9", "/é", "those of the URL, too")
matches(c, "both-raw", "/é", "/é")
matches(c, "hex-lower-in-rule", "/%c3%a9", "/%C3%A9", "the case of an escape's digits doesn't count", by="hex-case")
matches(c, "hex-lower-in-url", "/%C3%A9", "/%c3%a9", "the case of an escape's digits doesn't count", by="hex-case")
matches(c, "query", "/a?b=é", "/a?b=%C3%A9")
matches(c, "half-escaped", "/日%E6%9C%AC", "/%E6%97%A5本", by="row-4")
matches(c, "behind-star", "/*é", "/caf%C3%A9")
matches(c, "before-dollar", "/é$", "/%C3%A9")
matches_not(c, "not-latin-1", "/é", "/%E9", "UTF-8 is escaped, not Latin-1")
matches_not(c, "not-composed", "/é", "/e%CC%81", "octets are compared, not characters that look alike", by="end-of-path")
c("allow", "An allow beyond ASCII allows its part.", star("disallow: /", "allow: /日本"), "/%E6%97%A5%E6%9C%AC/a", ALLOWED, 3)

c = BOOK.clause("rfc-2.2.2-decode")
for name, char in [("letter", "a"), ("digit", "0"), ("hyphen", "-"), ("dot", "."), ("underscore", "_"), ("tilde", "~")]:
    escape = f"%{ord(char):02X}"
    matches(c, f"{name}-in-url", f"/x{char}", f"/x{escape}", f"{escape} is {char}")
matches(c, "letter-in-rule", "/x%61", "/xa", "%61 is a in a rule, too", by="row-5")
matches(c, "tilde-in-rule", "/x%7E", "/x~", "%7E is ~ in a rule, too", by="row-5")
matches(c, "lower-case-digits", "/~a", "/%7ea", "%7e is ~, too", by="hex-case")
matches(c, "in-query", "/a?b=c", "/a?%62=%63")
matches_not(c, "case-of-letter", "/a", "/%41", "%41 is A", by="case")
matches_not(c, "once", "/A", "/%2541", "an escape is decoded once")
c("allow", "An allow allows what is escaped in the URL.", star("disallow: /", "allow: /~a"), "/%7Ea", ALLOWED, 3)
matches(c, "behind-star", "/*~a", "/x/%7Ea")

c = BOOK.clause("rfc-2.2.2-reserved")
matches(c, "slash-in-both", "/a%2Fb", "/a%2Fb")
matches(c, "question-mark-in-both", "/a%3Fb", "/a%3Fb")
matches(c, "percent-in-both", "/a%25b", "/a%25b")
matches(c, "blank-in-both", "/a%20b", "/a%20b")
for name, char in [("slash", "/"), ("question-mark", "?")]:
    escape = f"%{ord(char):02X}"
    matches_not(c, f"{name}-in-url", f"/a{char}b", f"/a{escape}b", f"{escape} is not {char}")
    matches_not(c, f"{name}-in-rule", f"/a{escape}b", f"/a{char}b", f"where {char} separates, it stays as it is", by="row-1")
matches_not(c, "equals-sign-in-url", "/a?b=c", "/a?b%3Dc", "%3D is not =")
matches_not(c, "equals-sign", "/a?b%3Dc", "/a?b=c", "where = separates, it stays as it is", by="row-1")
c("allow", "An allow for a path with / does not allow the one with %2F.", star("disallow: /", "allow: /a/b"), "/a%2Fb", DISALLOWED, 2)

c = BOOK.clause("rfc-2.2.2-table")
matches(c, "row-1", "/foo/bar?baz=quz", "/foo/bar?baz=quz", by="row-1")
matches(c, "row-2", "/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "reserved characters are escaped before they are compared", by="row-2")
matches(c, "row-2-back", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", "reserved characters are escaped before they are compared", by="row-2")
matches(c, "row-2-raw", "/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", by="row-2")
matches(c, "row-2-escaped", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", by="row-2")
matches(c, "row-3", "/foo/bar/ツ", "/foo/bar/%E3%83%84", by="row-3")
matches(c, "row-4", "/foo/bar/%E3%83%84", "/foo/bar/%E3%83%84", by="row-4")
matches(c, "row-5", "/foo/bar/%62%61%7A", "/foo/bar/baz", by="row-5")

c = BOOK.clause("own-reserved")
matches_not(c, "ampersand", "/a?b&c", "/a?b%26c", "%26 is not &")
matches_not(c, "plus", "/a?b+c", "/a?b%2Bc", "%2B is not +")

c = BOOK.clause("own-query-data")
for name, char in [("colon", ":"), ("slash", "/"), ("question-mark", "?"), ("at", "@")]:
    escape = f"%{ord(char):02X}"
    matches(c, f"{name}-in-url", f"/a?b={char}", f"/a?b={escape}", f"in a query, {escape} is {char}")
    matches(c, f"{name}-in-rule", f"/a?b={escape}", f"/a?b={char}", f"in a query, {escape} is {char}")
matches(c, "lower-case-digits", "/a?b=%2f", "/a?b=/", "%2f is %2F")
matches(c, "before-dollar", "/a?b=%2Fc$", "/a?b=/c")
matches(c, "star-to-escape", "/*%2F", "/a?u=b%2Fc", "* stands for a question mark, too")
matches(c, "star-to-raw", "/*%2F", "/a?u=b/c", "what is behind the question mark is in the query")
matches(c, "star-in-path", "/*%2F", "/a%2Fb")
matches_not(c, "star-in-path-raw", "/*%2F", "/a/b?c", "in a path, %2F is not /")
matches(c, "star-raw-rule", "/*/b", "/a?u=%2Fb", "in a query, %2F is /")
matches(c, "stars-in-path-and-query", "/*%2Fb*%2Fc", "/%2Fb?/c")
matches_not(c, "stars-path-raw", "/*%2Fb*%2Fc", "/b/b?/c", "in a path, %2F is not /")
matches_not(c, "first-question-mark", "/*%3Fb", "/a?b", "the first ? is not in the query")
matches_not(c, "twice", "/*%2F", "/a?b%252Fc", "an escape is decoded once")
c("length", "In a query a pattern is as long as it is with these characters raw.", star("disallow: /a?b=/c", "allow: /a?b=%2F"), "/a?b=/c", DISALLOWED, 2)
c("length-behind-star", "Behind a *, before any ?, a pattern is as long as it is written, whatever it matches.", star("allow: /*/*/*b", "disallow: /*%2F%2Fb"), "/a?//b", DISALLOWED, 3)
c("equal", "Rules are equivalent where they differ by such an escape alone.", star("disallow: /a?b=/", "allow: /a?b=%2F"), "/a?b=/", ALLOWED, 3)

c = BOOK.clause("doc-non-ascii")
matches(c, "rule-utf-8", "/テスト", "/%E3%83%86%E3%82%B9%E3%83%88")
matches(c, "rule-escaped", "/%E3%83%86%E3%82%B9%E3%83%88", "/テスト")
matches(c, "url-longer", "/テ", "/%E3%83%86%E3%82%B9%E3%83%88")

c = BOOK.clause("own-canonical")
matches(c, "blank", "/a b", "/a%20b", "no URL may hold a blank")
for char, name in zip('"<\\|', ["quote", "less", "backslash", "bar"], strict=True):
    matches(c, f"{name}-in-rule", f"/a{char}", f"/a%{ord(char):02X}", "no URL may hold that character")
matches(c, "braces", "/{id}", "/%7Bid%7D", "no URL may hold braces")
matches(c, "stray-percent", "/100%", "/100%")
matches_not(c, "stray-percent-is-itself", "/100%$", "/100%25", "a % that begins no escape is itself")
c("length-decoded", "A pattern is as long as it is with its letters decoded.", star("disallow: /abc", "allow: /%61%62"), "/abc", DISALLOWED, 2)
c("length-encoded", "A pattern is as long as it is with its characters beyond ASCII escaped.", star("disallow: /%C3*", "allow: /é"), "/%C3%A9", ALLOWED, 3)
c("not-idempotent", "An escape that results from decoding is not decoded again.", star("disallow: /%%41a"), "/%25Aa", ALLOWED, None)
