"""Cases of groups: which lines make one, and which one holds for a crawler."""

# A case is a line.
# fmt: off
from .writing import ALLOWED, DISALLOWED, Book, joined

BOOK = Book()

FOUR = joined("user-agent: a", "disallow: /c", "user-agent: b", "disallow: /d", "user-agent: e", "user-agent: f", "disallow: /g", "user-agent: h")
OTHER_FIRST = joined("user-agent: OtherBot", "disallow: /other", "user-agent: ExampleBot", "disallow: /a")

c = BOOK.clause("rfc-2.1-group")
c("ends-at-agent", "A user-agent line behind a rule ends the group: the first crawler does not get the rules that follow.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: OtherBot", "disallow: /b"), "/b", ALLOWED, None)
c("begins-at-agent", "A user-agent line behind a rule begins a group: the second crawler does not get the rules before it.", OTHER_FIRST, "/other", ALLOWED, None)
c("two-agents-first", "Two user-agent lines share the rules behind them: the first.", joined("user-agent: ExampleBot", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 3)
c("two-agents-second", "Two user-agent lines share the rules behind them: the second.", joined("user-agent: OtherBot", "user-agent: ExampleBot", "disallow: /a"), "/a", DISALLOWED, 3)
c("five-agents", "Five user-agent lines share the rules behind them.", joined(*(f"user-agent: {name}" for name in ["a", "b", "ExampleBot", "d", "e"]), "disallow: /a"), "/a", DISALLOWED, 6)
c("with-star", "A crawler's name and * may share a group.", joined("user-agent: *", "user-agent: ExampleBot", "disallow: /a"), "/a", DISALLOWED, 3)
c("allow-is-a-rule", "An allow ends a run of user-agent lines as a disallow does.", joined("user-agent: ExampleBot", "allow: /a", "user-agent: OtherBot", "disallow: /"), "/b", ALLOWED, None)
c("all-rules", "All rules behind a user-agent line are of its group.", joined("user-agent: ExampleBot", "disallow: /b", "disallow: /c", "disallow: /a"), "/a", DISALLOWED, 4)

c = BOOK.clause("rfc-2.1-last-group")
c("own", "The last group without rules allows everything to its crawler.", joined("user-agent: *", "disallow: /", "user-agent: ExampleBot"), "/a", ALLOWED, None)
c("others", "The last group without rules changes nothing for others.", joined("user-agent: *", "disallow: /a", "user-agent: OtherBot"), "/a", DISALLOWED, 2, by="anyone")
c("two-names", "A last group of two names without rules allows everything to both.", joined("user-agent: *", "disallow: /", "user-agent: OtherBot", "user-agent: ExampleBot"), "/a", ALLOWED, None)
c("with-sitemap", "A sitemap in the last group makes no rule.", joined("user-agent: *", "disallow: /", "user-agent: ExampleBot", "sitemap: https://example.com/s.xml"), "/a", ALLOWED, None, by="others")
c("with-delay", "A crawl-delay in the last group makes no rule.", joined("user-agent: *", "disallow: /", "user-agent: ExampleBot", "crawl-delay: 5"), "/a", ALLOWED, None, by="others")
c("star", "A last group for * without rules allows everything.", joined("user-agent: OtherBot", "disallow: /", "user-agent: *"), "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.2-token")
c("hyphen", "A token may have a hyphen.", "user-agent: Example-Bot\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["Example-Bot"])
c("underscore", "A token may have an underscore.", "user-agent: Example_Bot\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["Example_Bot"])
c("leading-hyphen", "A token may begin with a hyphen.", "user-agent: -x\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["-x"])
c("hyphen-counts", "A hyphen is not an underscore.", "user-agent: Example_Bot\ndisallow: /a\n", "/a", ALLOWED, None, tokens=["Example-Bot"], by="exactly")

c = BOOK.clause("rfc-2.2.1-case")
c("lower", "A token in lower case in the file matches.", "user-agent: examplebot\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("upper", "A token in upper case in the file matches.", "user-agent: EXAMPLEBOT\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("crawler-lower", "A crawler that calls itself in lower case finds its group.", "user-agent: ExampleBot\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["examplebot"])
c("two-cases", "Groups of one name in two cases are groups of one crawler.", joined("user-agent: EXAMPLEBOT", "disallow: /a", "user-agent: examplebot", "disallow: /b"), "/b", DISALLOWED, 4)

c = BOOK.clause("rfc-2.2.1-match")
c("first", "The crawler's own group is found first in the file.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: *", "disallow: /b"), "/a", DISALLOWED, 2)
c("last", "The crawler's own group is found last in the file.", joined("user-agent: *", "disallow: /b", "user-agent: ExampleBot", "disallow: /a"), "/a", DISALLOWED, 4)
c("not-star-too", "A crawler with a group of its own does not obey that of *.", joined("user-agent: *", "disallow: /b", "user-agent: ExampleBot", "disallow: /a"), "/b", ALLOWED, None, by="anyone")
c("not-star-allow", "An allow of * does not allow what the crawler's own group disallows.", joined("user-agent: *", "allow: /a/b", "user-agent: ExampleBot", "disallow: /a"), "/a/b", DISALLOWED, 4, by="anyone")
c("longer-name", "A group for a longer name that begins with the crawler's does not match.", "user-agent: ExampleBotNews\ndisallow: /a\n", "/a", ALLOWED, None, by="exactly")
c("longer-name-hyphen", "A group for a longer name with a hyphen does not match.", "user-agent: ExampleBot-News\ndisallow: /a\n", "/a", ALLOWED, None, by="exactly")
c("longer-name-at-front", "A group for a longer name that ends with the crawler's does not match.", "user-agent: MyExampleBot\ndisallow: /a\n", "/a", ALLOWED, None, by="exactly")
c("longer-name-and-star", "With a group for a longer name, that of * holds.", joined("user-agent: ExampleBot-News", "allow: /", "user-agent: *", "disallow: /a"), "/a", DISALLOWED, 4, by="exactly")
c("both-names-long", "With groups for a name and for a longer one, the longer has its own.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot-News", "disallow: /news"), "/a", ALLOWED, None, tokens=["ExampleBot-News"], by="exactly")
c("others", "A group holds for no other crawler.", "user-agent: OtherBot\ndisallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.2.1-combine")
TWICE = joined("user-agent: ExampleBot", "disallow: /a", "disallow: /b", "", "user-agent: ExampleBot", "disallow: /c")
c("first", "Of two groups for one crawler the rules of the first hold.", TWICE, "/b", DISALLOWED, 3)
c("second", "Of two groups for one crawler the rules of the second hold.", TWICE, "/c", DISALLOWED, 6)
c("apart", "Groups of one crawler are combined over those of others.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: OtherBot", "disallow: /b", "user-agent: ExampleBot", "disallow: /c"), "/c", DISALLOWED, 6)
c("not-the-others", "What stands between combined groups is not combined.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: OtherBot", "disallow: /b", "user-agent: ExampleBot", "disallow: /c"), "/b", ALLOWED, None, by="own-group")
c("longest-of-both", "The longest rule of combined groups decides.", joined("user-agent: ExampleBot", "allow: /a/b", "user-agent: ExampleBot", "disallow: /a"), "/a/b", ALLOWED, 2, by="most-octets")
c("longest-in-second", "The longest rule may stand in the second of combined groups.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot", "allow: /a/b"), "/a/b", ALLOWED, 4, by="most-octets")
c("star", "Two groups for * are combined.", joined("user-agent: *", "disallow: /a", "", "user-agent: *", "disallow: /b"), "/b", DISALLOWED, 5)
c("with-shared", "A group that is shared is combined with the crawler's own.", joined("user-agent: OtherBot", "user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot", "disallow: /b"), "/a", DISALLOWED, 3)
c("with-empty", "A group with an empty disallow is combined with one that has a path.", joined("user-agent: ExampleBot", "disallow:", "user-agent: ExampleBot", "disallow: /a"), "/a", DISALLOWED, 4, by="most-octets")

c = BOOK.clause("rfc-2.2.1-anyone")
c("only", "The group of * holds for a crawler without one of its own.", joined("user-agent: OtherBot", "disallow: /b", "user-agent: *", "disallow: /a"), "/a", DISALLOWED, 4)
c("middle", "The group of * may stand between others.", joined("user-agent: a", "disallow: /b", "user-agent: *", "disallow: /a", "user-agent: c", "allow: /"), "/a", DISALLOWED, 4)
c("not-the-others", "A crawler that has the group of * has no rules of other groups.", joined("user-agent: OtherBot", "disallow: /b", "user-agent: *", "disallow: /a"), "/b", ALLOWED, None, by="own-group")

c = BOOK.clause("rfc-2.2.1-none")
c("no-star", "Without a group for the crawler and one for * no rules apply.", "user-agent: OtherBot\ndisallow: /\n", "/a", ALLOWED, None)
c("several", "With groups for others alone no rules apply.", joined("user-agent: a", "disallow: /", "user-agent: b", "disallow: /"), "/a", ALLOWED, None)
c("no-groups", "A file with a sitemap alone has no rules.", "sitemap: https://example.com/s.xml\n", "/a", ALLOWED, None)
c("only-comments", "A file of comments has no rules.", "# user-agent: *\n# disallow: /\n", "/a", ALLOWED, None)

c = BOOK.clause("rfc-2.2.2-no-group")
c("disallow", "A disallow before all user-agent lines holds for nobody.", joined("disallow: /a", "user-agent: *", "disallow: /b"), "/a", ALLOWED, None)
c("allow", "An allow before all user-agent lines allows nothing.", joined("allow: /a/b", "user-agent: *", "disallow: /a"), "/a/b", DISALLOWED, 3)
c("only", "A file with a rule and no user-agent line has no rules.", "disallow: /\n", "/a", ALLOWED, None)
c("leaves-the-rest", "Rules in front leave the groups behind them as they are.", joined("disallow: /a", "user-agent: *", "disallow: /b"), "/b", DISALLOWED, 3)

c = BOOK.clause("doc-groups")
for token, path, line in [("a", "/c", 2), ("b", "/d", 4), ("e", "/g", 7), ("f", "/g", 7)]:
    c(f"{token}", f"Of the four groups of the page, that of {token} disallows {path}.", FOUR, path, DISALLOWED, line, tokens=[token])
for token, path in [("b", "/c"), ("h", "/g")]:
    c(f"{token}-not{path.replace('/', '-')}", f"Of the four groups of the page, that of {token} does not disallow {path}.", FOUR, path, ALLOWED, None, tokens=[token])

c = BOOK.clause("doc-agents")
THREE = joined("user-agent: googlebot-news", "disallow: /1", "user-agent: *", "disallow: /2", "user-agent: googlebot", "disallow: /3")
for name, tokens, path, line in [("news", ["googlebot-news", "googlebot"], "/1", 2), ("web", ["googlebot"], "/3", 6), ("images", ["googlebot-images", "googlebot"], "/3", 6), ("storebot", ["storebot-google"], "/2", 4), ("otherbot", ["otherbot"], "/2", 4)]:
    c(name, f"Of the three groups of the page, {name} has the one with {path}.", THREE, path, DISALLOWED, line, tokens=tokens)
for name, tokens, path in [("news-not-web", ["googlebot-news", "googlebot"], "/3"), ("web-not-star", ["googlebot"], "/2"), ("images-not-star", ["googlebot-images", "googlebot"], "/2")]:
    c(name, f"Of the three groups of the page, {name.partition('-')[0]} doesn't have the one with {path}.", THREE, path, ALLOWED, None, tokens=tokens)

c = BOOK.clause("doc-non-matching")
for name, value in [("version", "ExampleBot/1.2"), ("star", "ExampleBot*"), ("version-and-comment", "ExampleBot/2.1 (+https://example.com/bot)"), ("words", "ExampleBot and friends"), ("comma", "ExampleBot, OtherBot")]:
    c(name, f"{value} in a user-agent line is equivalent to ExampleBot.", joined("user-agent: *", "allow: /", f"user-agent: {value}", "disallow: /a"), "/a", DISALLOWED, 4)
c("version-merges", "Groups for a token with and without version are combined.", joined("user-agent: ExampleBot", "disallow: /a", "user-agent: ExampleBot/2.0", "disallow: /b"), "/b", DISALLOWED, 4)

c = BOOK.clause("doc-merge")
FISH = joined("user-agent: googlebot-news", "disallow: /fish", "user-agent: *", "disallow: /carrots", "user-agent: googlebot-news", "disallow: /shrimp")
for token, path, allowed, line in [("googlebot-news", "/fish", DISALLOWED, 2), ("googlebot-news", "/shrimp", DISALLOWED, 6), ("googlebot-news", "/carrots", ALLOWED, None), ("otherbot", "/carrots", DISALLOWED, 4), ("otherbot", "/fish", ALLOWED, None), ("otherbot", "/shrimp", ALLOWED, None)]:
    c(f"{token}{path.replace('/', '-')}", f"Of the groups of the page, those of {token} {'allow' if allowed else 'disallow'} {path}.", FISH, path, allowed, line, tokens=[token])

c = BOOK.clause("doc-other-fields")
SITEMAP = joined("user-agent: a", "sitemap: https://example.com/sitemap.xml", "user-agent: b", "disallow: /")
c("first", "A sitemap between two user-agent lines leaves the first in the group.", SITEMAP, "/x", DISALLOWED, 4, tokens=["a"])
c("second", "A sitemap between two user-agent lines leaves the second in the group.", SITEMAP, "/x", DISALLOWED, 4, tokens=["b"])

c = BOOK.clause("parser-star-agent")
c("blank-behind", "* with a blank and words behind is for anyone.", "user-agent: * and all\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("tab-behind", "* with a tab and words behind is for anyone.", "user-agent: *\tall\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("letters-behind", "* with letters right behind is for nobody.", "user-agent: *bot\ndisallow: /a\n", "/a", ALLOWED, None)
c("two-stars", "** is for nobody.", "user-agent: **\ndisallow: /a\n", "/a", ALLOWED, None)
c("slash-behind", "*/ is for nobody.", "user-agent: */1.0\ndisallow: /a\n", "/a", ALLOWED, None)
c("in-the-middle", "A * inside of a name stands for nothing.", "user-agent: Ex*Bot\ndisallow: /a\n", "/a", ALLOWED, None)

c = BOOK.clause("parser-token")
c("shorter-name", "A group for a name with which the crawler's begins does not match.", "user-agent: Example\ndisallow: /a\n", "/a", ALLOWED, None)
c("shorter-name-and-star", "With a group for a shorter name, that of * holds.", joined("user-agent: Example", "allow: /", "user-agent: *", "disallow: /a"), "/a", DISALLOWED, 4)
c("first-letters", "A group for the first letter of the crawler's name does not match.", "user-agent: e\ndisallow: /a\n", "/a", ALLOWED, None)
c("digits-behind", "Digits in a value end the token.", "user-agent: ExampleBot2\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("digit-in-front", "A value that begins with a digit has no token.", "user-agent: 2ExampleBot\ndisallow: /a\n", "/a", ALLOWED, None)
c("quotes", "A value in quotes has no token.", 'user-agent: "ExampleBot"\ndisallow: /a\n', "/a", ALLOWED, None)
c("semicolon", "A semicolon ends the token.", "user-agent: ExampleBot;OtherBot\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("dot", "A dot ends the token.", "user-agent: ExampleBot.Images\ndisallow: /a\n", "/a", DISALLOWED, 2)
c("second-word", "A name behind the token is ignored.", "user-agent: OtherBot ExampleBot\ndisallow: /a\n", "/a", ALLOWED, None)
c("identification-string", "The token of a whole identification string is its first name, Mozilla.", "user-agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\ndisallow: /a\n", "/a", ALLOWED, None)
c("beyond-ascii", "A letter beyond ASCII ends the token.", "user-agent: ExampleBoté\ndisallow: /a\n", "/a", DISALLOWED, 2)

c = BOOK.clause("parser-empty-agent")
c("behind-rules", "An empty user-agent behind a rule ends the group.", joined("user-agent: ExampleBot", "disallow: /b", "user-agent:", "disallow: /a"), "/a", ALLOWED, None)
c("names-nobody", "An empty user-agent names nobody.", "user-agent:\ndisallow: /a\n", "/a", ALLOWED, None)
c("in-run", "An empty user-agent in a run of them leaves the others in the group.", joined("user-agent: ExampleBot", "user-agent:", "disallow: /a"), "/a", DISALLOWED, 3)

c = BOOK.clause("parser-separator")
c("allow-without-slash", "A rule that can't match ends a run of user-agent lines, too.", joined("user-agent: ExampleBot", "disallow: nowhere", "user-agent: OtherBot", "disallow: /a"), "/a", ALLOWED, None)
c("rule-before-agents", "A rule before all groups does not separate the user-agent lines behind it.", joined("disallow: /b", "user-agent: ExampleBot", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)
c("typo-ends", "A disalow, with its typing error, ends a run of user-agent lines.", joined("user-agent: ExampleBot", "disalow: /b", "user-agent: OtherBot", "disallow: /a"), "/a", ALLOWED, None)
c("no-typo-ends-not", "An alow, which is no known typing error, ends no run of user-agent lines.", joined("user-agent: ExampleBot", "alow: /b", "user-agent: OtherBot", "disallow: /a"), "/a", DISALLOWED, 4)

c = BOOK.clause("own-wide-token")
c("digit", "A crawler with a digit in its name finds its group.", "user-agent: 360Spider\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["360Spider"])
c("digits-behind", "A crawler with digits at the end of its name finds its group.", "user-agent: Bot2000\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["Bot2000"])
c("dot", "A crawler with a dot in its name finds its group.", "user-agent: example.com-bot\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["example.com-bot"])
c("other-digits", "A crawler with other digits is another.", "user-agent: Bot2001\ndisallow: /a\n", "/a", ALLOWED, None, tokens=["Bot2000"])
c("version-behind", "A version behind such a name is ignored.", "user-agent: Bot2000/1.1\ndisallow: /a\n", "/a", DISALLOWED, 2, tokens=["Bot2000"])

c = BOOK.clause("own-tokens")
NEWS = joined("user-agent: ExampleBot", "disallow: /web", "user-agent: ExampleBot-News", "disallow: /news")
c("first-has-group", "The first token that has a group decides.", NEWS, "/web", ALLOWED, None, tokens=["ExampleBot-News", "ExampleBot"])
c("order-of-tokens", "The order of the tokens counts, not that of the file.", NEWS, "/web", DISALLOWED, 2, tokens=["ExampleBot", "ExampleBot-News"])
c("second-has-group", "Where the first token has no group, the second is tried.", NEWS, "/web", DISALLOWED, 2, tokens=["ExampleBot-Video", "ExampleBot"])
c("before-star", "The second token is preferred to *.", joined("user-agent: *", "disallow: /", "user-agent: ExampleBot", "disallow: /a"), "/b", ALLOWED, None, tokens=["ExampleBot-Video", "ExampleBot"])
c("empty-group", "A group without rules for the first token keeps the second from being tried.", joined("user-agent: ExampleBot", "disallow: /", "user-agent: ExampleBot-News"), "/a", ALLOWED, None, tokens=["ExampleBot-News", "ExampleBot"])
c("none", "Where no token has a group, * is obeyed.", joined("user-agent: OtherBot", "allow: /", "user-agent: *", "disallow: /a"), "/a", DISALLOWED, 4, tokens=["ExampleBot-News", "ExampleBot"])
