"""Cases of lines: what a line says, where it ends, what is accepted."""

# A case is a line.
# fmt: off
from .writing import ALLOWED, DISALLOWED, Book, Repeat, joined, star

BOOK = Book()

c = BOOK.clause("rfc-2.2-line")
c("mixed-case", "Fields are read in mixed case.", "uSeR-aGeNt: *\ndIsAlLoW: /a\n", "/a", DISALLOWED, 2, by="abnf-case")
c("allow-upper-case", "An ALLOW in upper case is read.", star("ALLOW: /a/b", "disallow: /a"), "/a/b", ALLOWED, 2, by="abnf-case")
c("no-blanks", "No blank is needed behind the colon.", "user-agent:*\ndisallow:/a\n", "/a", DISALLOWED, 2)
c("tab-before-field", "A tab in front of a rule's field doesn't count.", star("\tdisallow: /a"), "/a", DISALLOWED, 2)
c("blank-before-colon", "A blank between field and colon doesn't count.", "user-agent : *\ndisallow : /a\n", "/a", DISALLOWED, 2)
c("tab-before-colon", "A tab between field and colon doesn't count.", "user-agent\t: *\ndisallow\t: /a\n", "/a", DISALLOWED, 2, by="abnf-agent")
c("many-blanks", "Any number of blanks and tabs may stand before the value.", star("disallow: \t \t  /a"), "/a", DISALLOWED, 2)
c("blanks-behind-value", "Blanks behind a path are not part of it.", star("disallow: /a   "), "/a", DISALLOWED, 2, by="abnf-end")
c("blanks-behind-dollar", "Blanks behind a $ at the end don't change that it is the end.", star("disallow: /a$  "), "/a", DISALLOWED, 2, by="abnf-end")
c("blanks-behind-token", "Blanks behind a product token are not part of it.", "user-agent: ExampleBot  \ndisallow: /a\n", "/a", DISALLOWED, 2, by="abnf-end")
c("colon-in-path", "The first colon ends the field; others belong to the path.", star("disallow: /a:b"), "/a:b", DISALLOWED, 2, by="abnf-path")
c("colon-in-path-counts", "A colon in a path is compared like any character.", star("disallow: /a:b"), "/a", ALLOWED, None, by="abnf-path")
c("two-colons", "A second colon right behind the first belongs to the value.", star("disallow:: /a"), "/a", ALLOWED, None, by="abnf-path")

c = BOOK.clause("rfc-2.2-end-of-line")
for name, words, end in [("crlf", "CR LF", "\r\n"), ("cr", "CR", "\r")]:
    c(name, f"Lines end with {words}.", end.join(["user-agent: *", "disallow: /a", ""]), "/a", DISALLOWED, 2)
    c(f"{name}-second-rule", f"{words} separates two rules.", end.join(["user-agent: *", "disallow: /a", "disallow: /b", ""]), "/b", DISALLOWED, 3)
    c(f"{name}-empty-line", f"An empty line that ends with {words} counts as a line and ends no group.", end.join(["user-agent: *", "", "disallow: /a", ""]), "/a", DISALLOWED, 3)
    c(f"{name}-dollar", f"{words} is not part of the pattern: a $ before it is at the end.", end.join(["user-agent: *", "disallow: /a$", "allow: /b", ""]), "/a", DISALLOWED, 2)
c("mixed", "A file may mix the three ends of lines.", "user-agent: *\rdisallow: /a\r\ndisallow: /b\ndisallow: /c\r", "/c", DISALLOWED, 4)
for name, words, end in [("next-line", "U+0085", "\x85"), ("line-separator", "U+2028", "\u2028"), ("vertical-tab", "A vertical tab", "\x0b"), ("record-separator", "U+001E", "\x1e")]:
    c(name, f"{words} does not end a line.", f"user-agent: *\ndisallow: /b{end}disallow: /a\n", "/a", ALLOWED, None)
c("line-separator-comment", "U+2028 does not end a comment.", "user-agent: *\nallow: /b # x\u2028disallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.2-comment")
c("behind-rule", "A comment behind a rule is not part of its path.", star("disallow: /a # all of it"), "/a", DISALLOWED, 2, by="abnf-end")
c("right-behind-path", "A # right behind a path begins a comment, too.", star("disallow: /a#b"), "/ax", DISALLOWED, 2)
c("whole-line", "A rule that is commented out is no rule.", star("# disallow: /a"), "/a", ALLOWED, None)
c("behind-agent", "A comment behind a product token is not part of it.", "user-agent: ExampleBot # ours\ndisallow: /a\n", "/a", DISALLOWED, 2, by="abnf-end")
c("behind-star", "A comment right behind * is not part of it.", "user-agent: *#anyone\ndisallow: /a\n", "/a", DISALLOWED, 2, by="abnf-end")
c("before-colon", "A # before the colon leaves no rule.", star("disallow # : /a"), "/a", ALLOWED, None, by="abnf-rule")
c("before-path", "A # before the path leaves a rule without path.", star("disallow: # /a"), "/a", ALLOWED, None)
c("in-run-of-agents", "A line of comment between user-agent lines does not separate them.", joined("user-agent: ExampleBot", "# and", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4, by="abnf-end")
c("ends-with-cr", "A CR ends a comment: the next line is read.", "user-agent: *\r# no more\rdisallow: /a\r", "/a", DISALLOWED, 3, by="abnf-end")
c("behind-dollar", "A $ before a comment is at the end of its pattern.", star("disallow: /a$ # end"), "/a", DISALLOWED, 2, by="abnf-end")

c = BOOK.clause("rfc-2.2-empty-line")
c("behind-agent", "An empty line between user-agent and rules ends no group.", joined("user-agent: ExampleBot", "", "disallow: /a"), "/a", DISALLOWED, 3)
c("between-rules", "An empty line between rules ends no group.", joined("user-agent: ExampleBot", "disallow: /a", "", "disallow: /b"), "/b", DISALLOWED, 4)
c("between-agents", "An empty line between user-agent lines does not separate them.", joined("user-agent: ExampleBot", "", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)
c("at-start", "Empty lines may stand at the start.", joined("", "", "user-agent: *", "disallow: /a"), "/a", DISALLOWED, 4)
c("of-blanks", "A line of blanks and tabs is empty.", joined("user-agent: ExampleBot", " \t ", "disallow: /a"), "/a", DISALLOWED, 3)
c("nothing", "An empty file has no rules.", "", "/a", ALLOWED, None, by="none")
c("rules-in-blocks", "The rules of a group may stand in blocks, whose order doesn't matter.", joined("user-agent: ExampleBot", "disallow: /a", "", "allow: /a/b", "", "disallow: /c"), "/a/b/c", ALLOWED, 4)

c = BOOK.clause("rfc-2.2-empty-pattern")
c("allow", "An allow without path is shorter than any other.", star("disallow: /", "allow:"), "/a", DISALLOWED, 2)
c("beside-a-path", "A disallow without path doesn't undo those with one.", star("disallow:", "disallow: /a"), "/a", DISALLOWED, 3)
c("behind-a-path", "A disallow without path, behind one with a path, doesn't undo it.", star("disallow: /a", "disallow:"), "/a", DISALLOWED, 2)
c("allow-ends-run-of-agents", "An allow without path ends a run of user-agent lines.", joined("user-agent: ExampleBot", "allow:", "user-agent: OtherBot", "disallow: /a"), "/a", ALLOWED, by="abnf-group")

c = BOOK.clause("rfc-2.2-utf-8")
c("two-octets", "A path in UTF-8, two octets to a character, matches the escaped URL.", star("disallow: /ñ"), "/%C3%B1", DISALLOWED, 2)
c("four-octets", "A path in UTF-8, four octets to a character, matches the escaped URL.", star("disallow: /😀"), "/%F0%9F%98%80", DISALLOWED, 2)
c("in-token-line", "A user-agent line with a name in UTF-8 names nobody else.", "user-agent: Éxample\ndisallow: /\n", "/a", ALLOWED, None, by="abnf-identifier")
c("in-comment", "A comment may be in any language.", star("disallow: /a # für alle, 全部"), "/a", DISALLOWED, 2, by="abnf-comment")

c = BOOK.clause("rfc-2.2.3-hash")
c("line-comment", "The standard's own example: a comment behind a rule.", star("disallow: /", "allow: / # comment in line"), "/a", ALLOWED, 3)
c("escaped", "An escaped # in a path is no comment.", star("disallow: /a%23b"), "/a%23b", DISALLOWED, 2, by="verbatim")
c("escaped-counts", "An escaped # in a path is compared.", star("disallow: /a%23b"), "/a", ALLOWED, None, by="verbatim")
c("in-query", "A # in the query of a path begins a comment.", star("disallow: /a?b#c"), "/a?bd", DISALLOWED, 2)

c = BOOK.clause("rfc-2.2.4-other")
for name, line in [
    ("sitemap", "sitemap: https://example.com/sitemap.xml"),
    ("crawl-delay", "crawl-delay: 10"),
    ("unknown", "x-unknown: whatever"),
]:
    c(f"{name}-behind-agent", f"A line of {line.partition(':')[0]} behind user-agent leaves the rules below to the crawler.", joined("user-agent: ExampleBot", line, "disallow: /a"), "/a", DISALLOWED, 3)
    c(f"{name}-between-rules", f"A line of {line.partition(':')[0]} between rules ends no group.", joined("user-agent: ExampleBot", "disallow: /b", line, "disallow: /a"), "/a", DISALLOWED, 4)
    c(f"{name}-between-agents", f"A line of {line.partition(':')[0]} between user-agent lines does not separate them.", joined("user-agent: ExampleBot", line, "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)
for line in ["request-rate: 1/5", "host: example.com", "noindex: /b"]:
    name = line.partition(":")[0]
    c(f"{name}-between-agents", f"A line of {name} between user-agent lines does not separate them.", joined("user-agent: ExampleBot", line, "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)
c("sitemaps-plural", "A Sitemaps record, as the standard spells it, ends no group.", joined("user-agent: ExampleBot", "disallow: /b", "Sitemaps: https://example.com/s.xml", "disallow: /a"), "/a", DISALLOWED, 4)
c("path-of-another", "The value of another record is no rule.", star("noindex: /a"), "/a", ALLOWED, None)
c("looks-like-a-rule", "A field that only ends like disallow is another record.", star("x-disallow: /a"), "/a", ALLOWED, None)
c("looks-like-an-agent", "A field that only ends like user-agent begins no group.", joined("user-agent: ExampleBot", "disallow: /a", "x-user-agent: OtherBot", "disallow: /b"), "/b", DISALLOWED, 4)

c = BOOK.clause("rfc-2.3.1.5-each-line")
for name, words, line in [
    ("words", "words", b"please stay away"),
    ("one-word", "one word", b"disallow"),
    ("only-colon", "nothing but a colon", b":"),
    ("html", "HTML", b"<p>disallow</p>"),
    ("controls", "control characters", b"\x01\x02\x03"),
    ("not-utf-8", "octets that are no UTF-8", b"disallow \xff\xfe\xfa : x"),
    ("utf-16", "UTF-16", "disallow: /b".encode("utf-16-le").replace(b"\n", b"")),
    ("nul", "a NUL", b"\0"),
]:
    c(f"{name}-before-rule", f"A line of {words} before a rule doesn't prevent that it is read.", b"user-agent: *\n" + line + b"\ndisallow: /a\n", "/a", DISALLOWED, 3)
c("before-agent", "A line of octets that are no UTF-8 at the start doesn't prevent that the group is read.", b"\xff\xfe\xfa\nuser-agent: *\ndisallow: /a\n", "/a", DISALLOWED, 3)
c("between-agents", "A line that can't be read, between user-agent lines, does not separate them.", joined("user-agent: ExampleBot", "?????", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)
c("is-no-rule", "A path alone on its line is no rule.", star("/a"), "/a", ALLOWED, None, by="abnf-rule")
c("binary", "A file of octets 0 to 255 has no rules, and is no error.", bytes(range(256)), "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.5-limit")
COMMENT = "# sixteen bytes\n"
_group = "user-agent: *\ndisallow: /a\n"
c("half", "A group behind 250,000 bytes of comments counts.", COMMENT + _group, "/a", DISALLOWED, 15_627, repeat=Repeat(0, 16, 15_625))
c("last-rule", "A rule that ends with the 512,000th byte counts.", COMMENT + "user-agent: *\ndisallow: /abcdef\n", "/abcdef", DISALLOWED, 32_000, repeat=Repeat(0, 16, 31_998))
c("many-rules", "The last of 20,000 rules counts.", "user-agent: *\ndisallow: /rule/of/many\ndisallow: /a\n", "/a", DISALLOWED, 20_002, repeat=Repeat(14, 38, 20_000))
c("many-groups", "The last of 10,000 groups counts.", "user-agent: Other\ndisallow: /b\nuser-agent: ExampleBot\ndisallow: /a\n", "/a", DISALLOWED, 20_002, repeat=Repeat(0, 31, 10_000))
c("many-agents", "The last of 20,000 user-agent lines of a group counts.", "user-agent: Other\nuser-agent: ExampleBot\ndisallow: /a\n", "/a", DISALLOWED, 20_002, repeat=Repeat(0, 18, 20_000))

c = BOOK.clause("doc-format")
c("cr-line-numbers", "The lines of a file with CR alone are counted.", "user-agent: *\r\r\rdisallow: /a\r", "/a", DISALLOWED, 4)
c("crlf-line-numbers", "CR LF is the end of one line, not of two.", "user-agent: *\r\n\r\n\r\ndisallow: /a\r\n", "/a", DISALLOWED, 4)
c("none-at-end", "The last line needs no end.", "user-agent: *\ndisallow: /a", "/a", DISALLOWED, 2)
c("none-at-end-of-agent", "A user-agent line that ends with the file begins a group without rules.", "user-agent: *\ndisallow: /\nuser-agent: ExampleBot", "/a", ALLOWED, None)
c("cr-comment", "With CR alone a comment ends at its line.", "# all\ruser-agent: *\rdisallow: /a\r", "/a", DISALLOWED, 3)

c = BOOK.clause("doc-bom")
BOM = "\ufeff"
c("before-agent", "A byte order mark before user-agent is ignored.", BOM + star("disallow: /a"), "/a", DISALLOWED, 2)
c("before-own-agent", "A byte order mark before the crawler's own group doesn't hide it.", BOM + joined("user-agent: ExampleBot", "disallow: /a", "user-agent: *", "allow: /"), "/a", DISALLOWED, 2)
c("before-comment", "A byte order mark before a comment is ignored.", BOM + "# x\n" + star("disallow: /a"), "/a", DISALLOWED, 3)
c("alone", "A file of a byte order mark has no rules.", BOM, "/a", ALLOWED, None)
c("sitemap", "A byte order mark before a sitemap is ignored.", BOM + "sitemap: https://example.com/s.xml\n", "/", sitemaps=["https://example.com/s.xml"])

c = BOOK.clause("doc-invalid")
c("html-page", "An HTML page has no rules.", "<!DOCTYPE html>\n<html><head><title>disallow: /</title></head>\n<body>user-agent: * disallow: /</body></html>\n", "/a", ALLOWED, None)
c("rules-in-html", "The valid lines in an HTML page count.", "<html>\n<pre>\nuser-agent: *\ndisallow: /a\n</pre>\n</html>\n", "/a", DISALLOWED, 4)
c("json", "A JSON answer has no rules.", '{"user-agent": "*", "disallow": "/"}\n', "/a", ALLOWED, None)

c = BOOK.clause("doc-not-utf-8")
c("latin-1-rule", "A rule in Latin-1 leaves the next one as it is.", b"user-agent: *\ndisallow: /caf\xe9\ndisallow: /a\n", "/a", DISALLOWED, 3)
c("latin-1-comment", "A comment in Latin-1 leaves its rule as it is.", b"user-agent: *\ndisallow: /a # caf\xe9\n", "/a", DISALLOWED, 2)
c("cut-character", "Half a character at the end leaves the rules before it.", b"user-agent: *\ndisallow: /a\n# \xe2\x82", "/a", DISALLOWED, 2)

c = BOOK.clause("doc-line")
c("leading-white-space", "White space at the beginning of a line is ignored.", "\t user-agent: *\n \t disallow: /a\n", "/a", DISALLOWED, 2)
c("blank-in-path-counts", "A blank ends no path: what stands behind it is compared, too.", star("disallow: /a b"), "/a", ALLOWED, None)

c = BOOK.clause("doc-fields")
c("unknown", "A field that nobody knows is ignored.", star("forbid: /a"), "/a", ALLOWED, None)
c("visit-time", "visit-time is no rule.", star("visit-time: 0100-0500", "disallow: /a"), "/a", DISALLOWED, 3)

c = BOOK.clause("parser-typos")
for word in ["dissallow", "dissalow", "disalow", "diasllow", "disallaw"]:
    c(word, f"{word} is read as disallow.", star(f"{word}: /a"), "/a", DISALLOWED, 2)
c("upper-case", "A typing error is known in any case.", star("DISALOW: /a"), "/a", DISALLOWED, 2)
c("user-blank-agent", "user agent, with a blank, is read as user-agent.", "user agent: *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("useragent", "useragent is read as user-agent.", "useragent: *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("user_agent", "user_agent, with an underscore, is another field.", "user_agent: *\ndisallow: /a\n", "/a", ALLOWED, None)
c("disallo", "disallo is no field that is known.", star("disallo: /a"), "/a", ALLOWED, None)
c("alow", "alow is not read as allow.", star("disallow: /a", "alow: /a/b"), "/a/b", DISALLOWED, 2)
c("site-map", "site-map is read as sitemap.", "site-map: https://example.com/s.xml\n", "/", sitemaps=["https://example.com/s.xml"])

c = BOOK.clause("parser-field-beginning")
c("disallowed", "disallowed begins with disallow and is read so.", star("disallowed: /a"), "/a", DISALLOWED, 2)
c("allows", "allows begins with allow and is read so.", star("disallow: /a", "allows: /a/b"), "/a/b", ALLOWED, 3)
c("user-agents", "user-agents begins with user-agent and is read so.", "user-agents: *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("user-agent-words", "user-agent with more words before the colon is read as user-agent.", "User-agent of all: *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("disallow-ai-training", "DisallowAITraining begins with disallow and is read so.", star("DisallowAITraining: /a"), "/a", DISALLOWED, 2)
c("sitemaps", "sitemaps begins with sitemap and is read so.", "sitemaps: https://example.com/s.xml\n", "/", sitemaps=["https://example.com/s.xml"])

c = BOOK.clause("parser-no-colon")
c("rule", "A blank in place of the colon is accepted.", star("disallow /a"), "/a", DISALLOWED, 2)
c("tab", "A tab in place of the colon is accepted.", star("disallow\t/a"), "/a", DISALLOWED, 2)
c("agent", "A user-agent line without a colon is accepted.", "user-agent *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("many-blanks", "Any number of blanks in place of the colon is accepted.", star("disallow  \t /a"), "/a", DISALLOWED, 2)
c("three-words", "Three words without a colon are no rule.", star("disallow /a /b"), "/a", ALLOWED, None)
c("comment", "A comment is no third word.", star("disallow /a # b"), "/a", DISALLOWED, 2)
c("colon-in-value", "A colon in the second word parts field and value there.", star("disallow /a:b"), "/b", ALLOWED)
c("useragent", "useragent without a colon is read as user-agent.", "useragent *\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("user-agent-in-three", "user agent *, without a colon, is three words.", "user agent *\ndisallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("parser-bom")
c("two-octets", "The first two octets of a byte order mark are skipped.", b"\xef\xbb" + star("disallow: /a").encode(), "/a", DISALLOWED, 2)
c("one-octet", "The first octet of a byte order mark is skipped.", b"\xef" + star("disallow: /a").encode(), "/a", DISALLOWED, 2)
c("two-marks", "A second byte order mark is not skipped.", BOM + BOM + star("disallow: /a"), "/a", ALLOWED, None)
c("second-line", "A byte order mark in the second line is not skipped.", "# x\n" + BOM + star("disallow: /a"), "/a", ALLOWED, None)
c("last-octet", "The last octet of a byte order mark is not skipped.", b"\xbf" + star("disallow: /a").encode(), "/a", ALLOWED, None)
c("before-rule", "A byte order mark before a rule makes it another field.", "user-agent: *\n" + BOM + "disallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("parser-long-line")
# Blanks are repeated: "disallow:", 16,651 of them and "/b$" are 16,663 bytes.
c("dollar-cut-off", "A $ behind 16,663 bytes of a line is cut off.", "user-agent: *\ndisallow:  /b$\n", "/bc", DISALLOWED, 2, repeat=Repeat(23, 24, 16_651))
c("dollar-kept", "A $ that is the 16,663rd byte of a line counts.", "user-agent: *\ndisallow:  /b$\n", "/bc", ALLOWED, None, repeat=Repeat(23, 24, 16_650))
c("path-behind", "A path behind 16,663 blanks is cut off.", "user-agent: *\ndisallow: /a\n", "/a", ALLOWED, repeat=Repeat(23, 24, 16_700))
c("next-line", "The line behind a long one is read.", "user-agent: *\ndisallow: /xb\ndisallow: /a\n", "/a", DISALLOWED, 3, repeat=Repeat(25, 26, 20_000))

c = BOOK.clause("parser-nul")
c("in-path", "A path ends at a NUL.", b"user-agent: *\ndisallow: /a\0b\n", "/ax", DISALLOWED, 2)
c("before-path", "A NUL before the path leaves none.", b"user-agent: *\ndisallow: \0/a\n", "/a", ALLOWED)
c("before-field", "A NUL before the field leaves an empty line.", b"user-agent: *\n\0disallow: /a\n", "/a", ALLOWED, None)
c("before-colon", "A NUL before the colon leaves no rule.", b"user-agent: *\ndisallow\0: /a\n", "/a", ALLOWED, None)
c("in-token", "A product token ends at a NUL.", b"user-agent: ExampleBot\0News\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("ends-no-line", "A NUL ends no line.", b"user-agent: *\ndisallow: /b\0disallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("parser-white-space")
c("vertical-tab-behind", "A vertical tab behind a path is white space.", "user-agent: *\ndisallow: /a\x0b\n", "/a", DISALLOWED, 2)
c("form-feed-behind", "A form feed behind a path is white space.", "user-agent: *\ndisallow: /a\x0c\n", "/a", DISALLOWED, 2)
c("form-feed-before", "A form feed before a field is white space.", "user-agent: *\n\x0cdisallow: /a\n", "/a", DISALLOWED, 2)
c("form-feed-is-no-end", "A form feed ends no line.", "user-agent: *\ndisallow: /b\x0cdisallow: /a\n", "/a", ALLOWED, None)
c("form-feed-line", "A form feed alone on its line says nothing.", "user-agent: *\n\x0c\ndisallow: /a\n", "/a", DISALLOWED, 3)

c = BOOK.clause("parser-line-numbers")
c("lf-cr", "LF CR are two ends: an empty line stands between.", "user-agent: *\n\rdisallow: /a\n\r", "/a", DISALLOWED, 3)
c("cr-cr-lf", "CR CR LF are two ends.", "user-agent: *\r\r\ndisallow: /a\r\r\n", "/a", DISALLOWED, 3)
