"""Cases that scrapy-rep fails, and why."""

KNOWN = {
    "rfc-2.2.2-table/row-2": (
        "RFC 3986, section 2.2, to which the same section of RFC 9309 refers, says that the two"
        " URLs differ"
    ),
}
