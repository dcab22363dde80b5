"""Odd URLs for a server: a fixed table, and its combinations."""

from itertools import product

PIECES = (
    "a", "", ".", "..", "...", ";", "a;", "a;p=1", "..;", ";.", "%2e", "%2E%2e", ".%2E", "%2F", "%2f",
    "%61", "%7E", "%3B", "%3b", "%3F", "%3f", "%23", "%25", "%2541", "%zz", "%", "%%41a", "%C3%A9",
    "%c3%a9", "%FF", "é", "☃", "%20", " ", "\t", "\n", "\x00", "%00", "%09", "%0A", "%0d%0a", "\\", "%5C",
    "%5c", "+", "%2B", "[1]", "%5B1%5D", "|", "^`{}", "'\"", "<>", "*$", "%2A%24", "!~(),&", "@:", "=%3D",
)  # fmt: skip
"""Segments of paths."""
TWICE = (
    "a", "", ".", "..", ";", "a;p=1", "..;", "%2e", "%2E%2e", "%2F", "%3b", "%3F", "%2541", "%C3%A9", " ",
    "\t", "\\", "%5c", "[1]", "=%3D",
)  # fmt: skip
"""Those that are put before and behind each other."""
ENDS = (
    "", "/", "//", "/.", "/..", "/..;", ";", ";?", "?", ";;", "??", ";#f", "?#f", "#f", " ", "\t",
)  # fmt: skip
QUERIES = (
    "q", "q=%2F%3d;%3B", "a=b&c=%20+%2b", "[1]=|'", "/../b//c;d", "é%C3%A9", "%zz%", "%3F?", "\\ \t", "%0A#f",
)  # fmt: skip
PATHS = tuple(
    dict.fromkeys(
        [
            "",
            *(f"/{piece}{end}" for piece, end in product(PIECES, ENDS)),
            *(f"/{first}/{second}{end}" for first, second in product(TWICE, TWICE) for end in ("/x", ";?q")),
            *(f"{path}?{query}" for path, query in product(("", "/", "/a;p", "/a;", "//a", "/a/.", "/%2e%2E/b"), QUERIES)),
        ]
    )
)  # fmt: skip
"""From a path to the fragment."""
SERVERS = (
    "LocalHost:{}", "user@127.0.0.1:{}", "user:pass;word@127.0.0.1:{}", "a@b@127.0.0.1:{}", ":@127.0.0.1:{}",
    "[::1]:{}", "[0:0::1]:{}", "[::ffff:127.0.0.1]:{}", "bücher.test:{}", "xn--bcher-kva.test:{}", "straße.test:{}",
    "b%C3%BCcher.test:{}", "a_b.test:{}", "a.test.:{}", "127.1:{}", "0x7f.0.0.1:{}", "127.0.0.1:0{}",
    "127.0.0.1\\@other.test:{}", "127.0.0.1\t:{}", " 127.0.0.1:{}", "127.0.0.1:{}:80", "127.0.0.1:{} ",
    "\uff41.test:{}", "a。test:{}", "a;b.test:{}", "127.0.0.1:+{}",
)  # fmt: skip
"""With the port in them."""
OF_SERVERS = ("", "?", "/", "//a", "/a;", "/a;p?q", "/a%3D", "/..;", "#f", "?q", ";?", "/a/.")
BEGINNINGS = (
    "{}:/{}/a", "{}:{}/a", "{}:///{}/a", "{}:\\\\{}\\a", " {}://{}/a;", "{}\t://{}/a", "{}:/\t/{}/a;", "\n{}://{}/..;",
    "{}:////{}//a", "{}:/\\{}/a",
)  # fmt: skip
"""Scheme and server otherwise."""


def odd_urls(scheme, port):
    """All odd URLs for the server at ``port``."""
    plain = f"127.0.0.1:{port}"
    for path in PATHS:
        yield f"{scheme}://{plain}{path}"
    for server, path in product(SERVERS, OF_SERVERS):
        yield f"{scheme}://{server.format(port)}{path}"
    for beginning, name in product(BEGINNINGS, (scheme, scheme.title())):
        yield beginning.format(name, plain)
