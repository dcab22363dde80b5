"""Patterns and paths that are put together at random."""

import re
from urllib.parse import quote, unquote

PIECES = ["a", "b", "ab", "/", "*", "$", "%", "%2A", "%24", "%2f", "%61", "é", "?", "~", "!", "{", "x.y"]  # fmt: skip

QUERY_PIECES = ["a", "b", "/", "?", ":", "@", "*", "$", "%", "%2F", "%2f", "%3A", "%3F", "%40", "%26", "%25", "%61"]  # fmt: skip


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


def spelled(rng, piece):
    """Return a piece or its escape; an escape or its character."""
    if rng.random() < 0.5 or not re.fullmatch("[/?:@]|%(2F|2f|3A|3F|40)", piece):
        return piece
    return unquote(piece) if piece.startswith("%") else quote(piece, safe="")
