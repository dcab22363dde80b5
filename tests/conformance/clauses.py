"""The clauses that cases are written for: whose each is, where it stands, what it says.

``points`` are the names of the same thing in the specification that the project was given. Clauses
about fetching, caching and redirects are not here: a parser can't be asked about them.
"""

from typing import NamedTuple


class Clause(NamedTuple):
    whose: str
    where: str
    says: str
    points: tuple[str, ...] = ()
    by: str = ""
    """The sentence of RFC 9309 that decides its cases, where these don't name another."""


def _of(whose, source, rows):
    return {
        name: Clause(whose, f"{source}{where}", says, tuple(points.split()), *by)
        for name, where, says, points, *by in rows
    }


RFC = _of(
    "rfc",
    "RFC 9309, section ",
    [
        ("rfc-2.1-group", "2.1", "A group is one or more user-agent lines followed by rules; a user-agent line or the end of the file ends it.", "G-1", "group"),
        ("rfc-2.1-last-group", "2.1", "The last group may have no rules, which means that it implicitly allows everything.", "G-2", "last-group"),
        ("rfc-2.2-line", "2.2", "A line is a field in any case, a colon and a value, with blanks and tabs around each.", "L-2 L-4", "abnf-rule"),
        ("rfc-2.2-token", "2.2", "An identifier is made of letters, hyphens and underscores; the other product token is *.", "G-3", "abnf-identifier"),
        ("rfc-2.2-end-of-line", "2.2", "A line ends with CR, LF or CR LF, and with nothing else.", "L-1", "abnf-newline"),
        ("rfc-2.2-comment", "2.2", "A line may end with a comment, which begins with #.", "L-2", "abnf-comment"),
        ("rfc-2.2-empty-line", "2.2", "Empty lines may stand anywhere in a group and end nothing.", "G-1", "abnf-group"),
        ("rfc-2.2-empty-pattern", "2.2", "A rule may have an empty pattern, which has no octets.", "M-1 G-1", "most-octets"),
        ("rfc-2.2-utf-8", "2.2", "A path pattern may have any UTF-8 character but controls, space and #.", "L-1 M-2", "encode"),
        ("rfc-2.2.1-case", "2.2.1", "Crawlers MUST use case-insensitive matching to find the group that matches the product token.", "G-3", "own-group"),
        ("rfc-2.2.1-match", "2.2.1", "The crawler obeys the rules of the group that matches its product token.", "G-4", "own-group"),
        ("rfc-2.2.1-combine", "2.2.1", "If there is more than one group matching the user-agent, their rules MUST be combined into one group.", "G-5", "combined"),
        ("rfc-2.2.1-anyone", "2.2.1", "If no matching group exists, crawlers MUST obey the group with a user-agent line with the * value, if present.", "G-4", "anyone"),
        ("rfc-2.2.1-none", "2.2.1", "If no group matches and there is none for *, or there are no groups at all, no rules apply.", "G-4", "none"),
        ("rfc-2.2.2-case", "2.2.2", "The matching SHOULD be case sensitive.", "M-1", "case"),
        ("rfc-2.2.2-first-octet", "2.2.2", "The matching MUST start with the first octet of the path.", "M-1", "first-octet"),
        ("rfc-2.2.2-most-octets", "2.2.2", "The most specific match found MUST be used. It is the match that has the most octets.", "M-4", "most-octets"),
        ("rfc-2.2.2-equivalent", "2.2.2", "If an allow rule and a disallow rule are equivalent, then the allow rule SHOULD be used.", "M-4", "equivalent"),
        ("rfc-2.2.2-duplicates", "2.2.2", "Duplicate rules in a group MAY be deduplicated.", "M-4", "duplicates"),
        ("rfc-2.2.2-no-match", "2.2.2", "If no match is found among the rules of the group, or there are no rules, the URI is allowed.", "M-5", "no-match"),
        ("rfc-2.2.2-robots-txt", "2.2.2", "The /robots.txt URI is implicitly allowed.", "S-9", "robots-txt"),
        ("rfc-2.2.2-encode", "2.2.2", "Octets outside ASCII and those in the reserved range, in the URI and in the paths, MUST be percent-encoded as RFC 3986 defines prior to comparison.", "M-2", "encode"),
        ("rfc-2.2.2-reserved", "2.2.2", "An escape in the URI is not decoded if it is of a reserved character, or of one outside the unreserved range; the table keeps / ? = where they separate.", "M-2", "decode"),
        ("rfc-2.2.2-decode", "2.2.2", "An escape of an unreserved character in the URI MUST be decoded prior to comparison.", "M-2", "decode"),
        ("rfc-2.2.2-table", "2.2.2", "The table of percent-encoded paths and of the paths that they match.", "M-2"),
        ("rfc-2.2.2-end-of-path", "2.2.2", "It matches if and only if the end of the path from the rule is reached before a difference in octets.", "M-1", "end-of-path"),
        ("rfc-2.2.2-no-group", "2.2.2", "The crawler SHOULD ignore rules that are not in any group.", "G-8", "no-group"),
        ("rfc-2.2.3-hash", "2.2.3", "# designates a line comment.", "L-2", "hash"),
        ("rfc-2.2.3-dollar", "2.2.3", "$ designates the end of the match pattern.", "M-3", "dollar"),
        ("rfc-2.2.3-star", "2.2.3", "* designates 0 or more instances of any character.", "M-3", "star"),
        ("rfc-2.2.3-verbatim", "2.2.3", "Special characters that are meant verbatim are percent-encoded in the pattern.", "M-3", "verbatim"),
        ("rfc-2.2.4-other", "2.2.4", "Parsing of other records MUST NOT interfere with the records of the protocol; a Sitemaps record MUST NOT terminate a group.", "G-7 L-4", "others"),
        ("rfc-2.3-name", "2.3", "The file is named /robots.txt, all lowercase, in the top-level path of the service.", "S-9", "name"),
        ("rfc-2.3.1.5-each-line", "2.3.1.5", "Crawlers MUST try to parse each line, and MUST use the parseable rules.", "L-3", "each-line"),
        ("rfc-2.5-limit", "2.5", "The parsing limit MUST be at least 500 kibibytes.", "F-13", "limit"),
        ("rfc-5.1-example", "5.1", "The simple example.", "G-4 M-4"),
        ("rfc-5.2-example", "5.2", "The example of the longest match.", "M-4", "longest"),
    ],
)  # fmt: skip

GOOGLE_DOC = _of(
    "google-doc",
    "Google, How Google interprets the robots.txt specification, ",
    [
        ("doc-format", "File format", "UTF-8 text; lines are separated by CR, CR LF or LF.", "L-1"),
        ("doc-bom", "File format", "A byte order mark at the beginning is ignored.", "L-1"),
        ("doc-invalid", "File format", "Invalid lines are ignored, the valid ones are used, also of an HTML page.", "L-3 F-1"),
        ("doc-not-utf-8", "File format", "Characters that are not part of UTF-8 may be ignored; the other rules hold.", "L-3"),
        ("doc-line", "Syntax", "A line is <field>:<value><#optional-comment>; white space at the beginning and at the end is ignored.", "L-2"),
        ("doc-fields", "Syntax", "The fields are user-agent, allow, disallow and sitemap; unknown ones are ignored.", "L-4"),
        ("doc-no-path", "Syntax", "A rule without a path is ignored.", "M-1"),
        ("doc-sitemap", "sitemap", "A full URL, on any host, that need not be encoded; any number of them, tied to no user agent.", "L-6"),
        ("doc-groups", "Grouping of lines and rules", "user-agent lines that follow each other share the rules behind them.", "G-1 G-2"),
        ("doc-agents", "Order of precedence for user agents", "One group holds: that of the most specific user agent that matches; the order in the file doesn't matter.", "G-4 G-6"),
        ("doc-non-matching", "Order of precedence for user agents", "All non-matching text is ignored: googlebot/1.2 and googlebot* are equivalent to googlebot.", "G-3"),
        ("doc-merge", "Grouping of rules", "Groups of one user agent are combined; specific groups and the global one (*) are not.", "G-5"),
        ("doc-other-fields", "Grouping of rules", "Rules other than allow, disallow and user-agent are ignored by the parser: a sitemap line between user-agent lines does not separate them.", "G-7"),
        ("doc-paths", "URL matching based on path values", "The table of patterns and of the paths that they match.", "M-1 M-3"),
        ("doc-non-ascii", "URL matching based on path values", "Non-7-bit ASCII characters may be included as UTF-8 or as percent-escaped UTF-8.", "M-2"),
        ("doc-rules", "Order of precedence for rules", "The most specific rule by the length of its path; of conflicting rules the least restrictive.", "M-4"),
    ],
) | _of(
    "google-doc",
    "Google, Create a robots.txt file, ",
    [("doc-recipes", "Useful robots.txt rules", "The recipes.", "T-1 M-5")],
)  # fmt: skip

GOOGLE_PARSER = _of(
    "google-parser",
    "google/robotstxt, robots.cc, ",
    [
        ("parser-field-beginning", "KeyIsAllow, KeyIsDisallow, KeyIsUserAgent, KeyIsSitemap", "A field is known by its beginning.", "L-5"),
        ("parser-typos", "KeyIsDisallow, KeyIsUserAgent, KeyIsSitemap", "These typing errors are accepted, and no others.", "L-5"),
        ("parser-no-colon", "GetKeyAndValueFrom", "A missing colon is accepted where the line is exactly two words.", "L-5"),
        ("parser-bom", "Parse", "The beginning of a byte order mark is skipped, too, at the start of the file only.", "L-1"),
        ("parser-long-line", "Parse", "What exceeds 16,663 bytes of a line is ignored.", "L-3"),
        ("parser-nul", "ParseAndEmitLine", "A NUL ends the content of its line.", "L-3"),
        ("parser-white-space", "StripWhitespaceSlowly", "Vertical tab and form feed around field and value are white space, and end no line.", "L-1 L-2"),
        ("parser-line-numbers", "Parse", "CR LF is one end of a line, LF CR are two.", "L-1"),
        ("parser-star-agent", "HandleUserAgent", "* is for anyone only alone or before white space.", "G-3"),
        ("parser-token", "ExtractUserAgent", "The leading letters, hyphens and underscores of a value are compared as a whole.", "G-3"),
        ("parser-empty-agent", "HandleUserAgent", "An empty user-agent value matches no crawler, and begins a group.", "G-1"),
        ("parser-separator", "HandleAllow, HandleDisallow", "allow and disallow, empty or not, end a run of user-agent lines; no other field does.", "G-1 G-7"),
        ("parser-index-file", "HandleAllow", "An allow whose last segment begins with index.htm allows the directory, too.", "M-4"),
        ("parser-length", "LongestMatchRobotsMatchStrategy", "A rule is as long as its pattern is written, also with * at the end.", "M-4"),
        ("parser-first-octet", "Matches", "A pattern is compared from the first octet of the path, also one that begins with neither / nor *, which the grammar of RFC 9309 does not have.", "M-1"),
        ("parser-dollar", "Matches", "A $ that is not the last character of a pattern is a character.", "M-3"),
        ("parser-url", "GetPathParamsQuery", "Matched is the path with parameters and query; / is put before where there is none; the fragment is none of it.", "M-1"),
    ],
)  # fmt: skip

DECISIONS = _of(
    "decision",
    "scrapy-rep, ",
    [
        ("own-canonical", "Canonical form", "Characters that no URI may hold have their escape as their only form; a % that begins no escape is itself.", "M-2"),
        ("own-reserved", "Escapes of reserved characters", "An escape of a reserved character is not that character (RFC 3986, section 2.2), except : / ? @ in a query.", "M-2"),
        ("own-query-data", "Escapes of reserved characters", "Behind the first ? of a URL, an escape of : / ? @ is that character (RFC 3986, section 3.4), also where it is behind a * of the rule.", "M-2"),
        ("own-wide-token", "Product tokens", "A token with digits or dots is compared with the digits and dots of the value.", "G-3"),
        ("own-tokens", "Product tokens", "Tokens are tried in their order: the first that has a group decides, else *.", "G-6"),
        ("own-first-of-equals", "Rules of the same length", "Of allows that match equally well, the first in the file is the one that is shown.", "M-4"),
        ("own-effort", "Patterns", "Matching takes bounded effort, whatever a site writes.", "M-3"),
        ("own-crawl-delay", "Crawl-delay", "The longest delay that the lines behind the crawler's own user-agent lines ask for, in seconds.", "L-4"),
        ("own-content-usage", "Preferences about use, U-1", "Content-Usage lines of the group; the longest path that matches, as a whole.", "U-1"),
        ("own-content-signal", "Preferences about use, U-2", "Content-Signal lines of the group; the more restrictive of equals.", "U-2"),
    ],
)  # fmt: skip

CLAUSES = RFC | GOOGLE_DOC | GOOGLE_PARSER | DECISIONS
POINTS = (
    *(f"L-{number}" for number in range(1, 7)),
    *(f"G-{number}" for number in range(1, 9)),
    *(f"M-{number}" for number in range(1, 6)),
    *("S-9", "F-1", "F-13", "T-1", "U-1", "U-2"),
)
"""The points about lines, groups, matching and use; the others are about fetching."""
