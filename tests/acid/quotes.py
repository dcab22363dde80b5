"""The sentences that decide stories, as they stand in the documents: whose rule it is, where, and the sentence.

Those of Google are of *How Google interprets the robots.txt specification*, as of 14 April 2026.
"""

# A sentence is a line.
# fmt: off
LONGEST = ("RFC 9309 §2.2.2", "The most specific match found MUST be used. The most specific match is the match that has the most octets.")
MATCH = ("RFC 9309 §2.2.2", 'To evaluate if access to a URI is allowed, a crawler MUST match the paths in "allow" and "disallow" rules against the URI.')
EQUIVALENT = ("RFC 9309 §2.2.2", 'If an "allow" rule and a "disallow" rule are equivalent, then the "allow" rule SHOULD be used.')
FIRST_OCTET = ("RFC 9309 §2.2.2", "The matching MUST start with the first octet of the path.")
ENCODED = ("RFC 9309 §2.2.2", "Octets in the URI and robots.txt paths outside the range of the ASCII coded character set, and those in the reserved range defined by [RFC3986], MUST be percent-encoded as defined by [RFC3986] prior to comparison.")
SPECIAL = ("RFC 9309 §2.2.3", "Crawlers MUST support the following special characters")
COMBINED = ("RFC 9309 §2.2.1", "If there is more than one group matching the user-agent, the matching groups' rules MUST be combined into one group and parsed according to Section 2.2.2.")
GROUP = ("RFC 9309 §2.2.1", "Crawlers MUST use case-insensitive matching to find the group that matches the product token and then obey the rules of the group.")
SUBSTRING = ("RFC 9309 §2.2.1", "The product token SHOULD be a substring of the identification string that the crawler sends to the service.")
END_OF_LINE = ("RFC 9309 §2.2", "NL = %x0D / %x0A / %x0D.0A")
SERVICE = ("RFC 9309 §2.3", 'The rules MUST be accessible in a file named "/robots.txt" (all lowercase) in the top-level path of the service.')
SUCCESS = ("RFC 9309 §2.3.1.1", "If the crawler successfully downloads the robots.txt file, the crawler MUST follow the parseable rules.")
REDIRECTS = ("RFC 9309 §2.3.1.2", "If a robots.txt file is reached within five consecutive redirects, the robots.txt file MUST be fetched, parsed, and its rules followed in the context of the initial authority.")
UNREACHABLE = ("RFC 9309 §2.3.1.4", "If the robots.txt file is unreachable due to server or network errors, this means the robots.txt file is undefined and the crawler MUST assume complete disallow.")
LIMIT = ("RFC 9309 §2.5", "Crawlers SHOULD impose a parsing limit to protect their systems; see Section 3. The parsing limit MUST be at least 500 kibibytes [KiB].")

DOC_AGENTS = ("Google, user-agent", "All non-matching text is ignored (for example, both googlebot/1.2 and googlebot* are equivalent to googlebot).")
DOC_LOCATION = ("Google, location", "The rules listed in the robots.txt file apply only to the host, protocol, and port number where the robots.txt file is hosted.")
DOC_3XX = ("Google, 3xx", "Google follows at least five redirect hops as defined by RFC 1945 and then stops and treats it as a 404 for the robots.txt file.")
DOC_LOGICAL = ("Google, 3xx", "Google doesn't follow logical redirects in robots.txt files (frames, JavaScript, or meta refresh-type redirects).")
DOC_4XX = ("Google, 4xx", "Google's crawlers treat all 4xx errors, except 429, as if a valid robots.txt file didn't exist. This means that Google assumes that there are no crawl restrictions.")
DOC_5XX = ("Google, 5xx", "For the first 12 hours, Google stops crawling the site but keeps trying to fetch the robots.txt file.")
DOC_ERRORS = ("Google, other errors", "A robots.txt file which cannot be fetched due to DNS or networking issues, such as timeouts, invalid responses, reset or interrupted connections, and HTTP chunking errors, is treated as a server error.")
DOC_CACHING = ("Google, caching", "Google may increase or decrease the cache lifetime based on max-age Cache-Control HTTP headers.")
DOC_FORMAT = ("Google, file format", "Google ignores invalid lines in robots.txt files, including the Unicode Byte Order Mark (BOM) at the beginning of the robots.txt file, and use only valid lines.")
DOC_NOT_UTF_8 = ("Google, file format", "Similarly, if the character encoding of the robots.txt file isn't UTF-8, Google may ignore characters that are not part of the UTF-8 range")

RETRY_AFTER = ("RFC 9110 §10.2.3", 'Servers send the "Retry-After" header field to indicate how long the user agent ought to wait before making a follow-up request.')
RETRY_AFTER_503 = ("RFC 9110 §10.2.3", "When sent with a 503 (Service Unavailable) response, Retry-After indicates how long the service is expected to be unavailable to the client.")
TOO_MANY = ("RFC 6585 §4", "The response representations SHOULD include details explaining the condition, and MAY include a Retry-After header indicating how long to wait before making a new request.")
