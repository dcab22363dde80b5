"""Files, patterns and paths that are put together at random."""

import re
from urllib.parse import quote, unquote

PIECES = ["a", "b", "ab", "/", "*", "$", "%", "%2A", "%24", "%2f", "%61", "é", "?", "~", "!", "{", "x.y"]  # fmt: skip

QUERY_PIECES = ["a", "b", "/", "?", ":", "@", "*", "$", "%", "%2F", "%2f", "%3A", "%3F", "%40", "%26", "%25", "%61"]  # fmt: skip

LINE_PIECES = [*PIECES, "index.html", "/index.htm", "index.htm$", "#", "ÿ"]
FIELDS = (
    "allow disallow Disallow Allow ALLOW disalow allows sitemap Crawl-delay x # Disallow#".split()  # noqa: SIM905 - pieces to read as one
)
AGENT_FIELDS = ["user-agent", "User-agent", "useragent", "user agent", "USER-AGENTS", " User-Agent"]
AGENTS = ["a", "b", "a-b", "A/1.0", "a1", "a.b", "*", "* x", "**", "", "*a", "a b", "*\t"]
COLONS = [":", ":", ":", ": ", " : ", " ", "", "::", "\t"]
ENDS = ["\n"] * 5 + ["\r\n", "\r", "\n\n", " # c\n", "#\n", "\0x\n", " \x0b\n", "\x85\n"]
TOKENS = ["a", "b", "a-b", "a1", "a.b", "A", "*", ""]


def joined(rng, most, pieces=PIECES):
    """Fewer than ``most`` of them."""
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(most)))


def pattern_and_path(rng):
    """Return two that often match: the path is made of the pattern, in other spellings."""
    pattern = rng.choice(["/", "/", "*"]) + joined(rng, 9, QUERY_PIECES)
    path = "".join(
        joined(rng, 4, QUERY_PIECES) if piece == "*" else spelled(rng, piece)
        for piece in re.split("(%[0-9A-Fa-f]{2}|.)", pattern.removesuffix("$"))
    )
    return pattern, f"/{path.removeprefix('/')}{rng.choice(['', '', 'a'])}"


def lone_percent_and_path(rng):
    """Return a pattern with a % that begins no escape, and a path that it matches as written."""
    pattern = rng.choice(["/", "/", "*"]) + joined(rng, 6, QUERY_PIECES)
    pattern += rng.choice(["%", "%2", "%f", "%%"]) + rng.choice(["", "*", "*?", "/", "?", "$"])
    path = "".join(
        joined(rng, 4, QUERY_PIECES) if piece == "*" else piece
        for piece in pattern.removesuffix("$")
    )
    end = "" if pattern.endswith("$") else joined(rng, 4, [*QUERY_PIECES, "2", "F", "5", "41"])
    return pattern, (path if path.startswith("/") else f"/{path}") + end


def spelled(rng, piece):
    """Return a piece or its escape; an escape or its character."""
    if rng.random() < 0.5 or not re.fullmatch("[/?:@]|%(2F|2f|3A|3F|40)", piece):
        return piece
    return unquote(piece) if piece.startswith("%") else quote(piece, safe="")


def line(rng):
    chance = rng.random()
    if chance < 0.25:
        parts = rng.choice(AGENT_FIELDS), rng.choice(COLONS), rng.choice(AGENTS)
    elif chance < 0.95:
        value = rng.choice(["/", "/", "", "*"]) + joined(rng, 7, LINE_PIECES)
        parts = rng.choice(FIELDS), rng.choice(COLONS), value
    else:
        parts = (joined(rng, 5, LINE_PIECES),)
    return "".join(parts) + rng.choice(ENDS)


def body(rng):
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(300))
    start = rng.choice(["", "user-agent: *\n", "user-agent: a\n", "\ufeff"])
    lines = (line(rng) for _ in range(rng.choice([3, 8, 20, 20, 60, 300])))
    found = (start + "".join(lines)).encode("utf-8")
    if rng.random() < 0.1 and found:
        at = rng.randrange(len(found))
        found = found[:at] + rng.randbytes(1) + found[at + 1 :]
    return found


def path_and_tokens(rng):
    path = "/" + joined(rng, 8, LINE_PIECES).replace("#", "")
    return path, rng.sample(TOKENS, rng.randrange(3))
