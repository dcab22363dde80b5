"""What must be so of a target if a rule is to match: most targets it lets go at a glance.

A pattern without ``*`` among its first characters matches what begins with them; what any other
matches contains its longest part. Beginnings are compared with the target where there are few. Of
more, only the first characters are looked for, in all of them at once.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

HEAD: Final = slice(4)
"""The first characters of a target that are looked for among those of many patterns."""
_FEW: Final = 16
_ANY: Final = ("",)
_head_of: Final = itemgetter(HEAD)


class Prefilter(NamedTuple):
    """No rule matches a target unless one of these three says so."""

    heads: str
    """What the head of the target is found in."""
    begins: tuple[str, ...]
    """The target begins with one of them."""
    parts: tuple[str, ...]
    """The target contains one of them."""


def prefilter_of(texts: Sequence[str] | None, parts: dict[str, str] | None) -> Prefilter:
    """Return what must be so for one of the literal texts to match, or a pattern with wildcards.

    *parts*: by pattern, what it says that a target must contain. None: too many to be looked at.
    """
    if texts is None:
        return Prefilter("", _ANY, ())
    if parts is None:
        return prefilter_of(texts, {})._replace(parts=_ANY)
    begins = texts
    floating: tuple[str, ...] = ()
    if parts:
        heads = dict.fromkeys(map(_head_of, parts))
        begins = [*texts, *(head for head in heads if "*" not in head)]
        floating = tuple({parts[pattern]: 0 for pattern in parts if "*" in pattern[HEAD]})
    if len(begins) > _FEW:
        heads = dict.fromkeys(map(_head_of, begins))
        short = tuple(head for head in heads if len(head) < HEAD.stop)
        return Prefilter("".join(heads), short, floating)
    if "$" in "".join(begins):
        begins = [begin.removesuffix("$") for begin in begins]
    return Prefilter("", tuple(begins), floating)
