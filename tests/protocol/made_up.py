"""Patterns and paths that are put together at random."""

PIECES = ["a", "b", "ab", "/", "*", "$", "%", "%2A", "%24", "%2f", "%61", "é", "?", "~", "!", "{", "x.y"]  # fmt: skip


def joined(rng, most, pieces=PIECES):
    """Fewer than ``most`` of them."""
    return "".join(rng.choice(pieces) for _ in range(rng.randrange(most)))
