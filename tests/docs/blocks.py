"""The literal blocks of the docs, and what kind each of them is."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.rst"))]
SHELL = ("pip ", "make", "cd ", "scrapy ")

_RST = re.compile(
    r"(?m)^(?P<indent> *)(?:\.\. code-block:: (?P<kind>\w+)|(?! *\.\. ).*::)\n(?P<body>(?:(?P=indent) +.*\n|\n)+)"
)
_MARKDOWN = re.compile(r"(?ms)^```(?P<kind>\w*)\n(?P<body>.*?)^```$")


class Block(NamedTuple):
    page: str
    kind: str
    """``python``, ``console``, ``shell``, ``log`` or ``none``."""
    text: str


def blocks():
    for page in PAGES:
        pattern = _MARKDOWN if page.suffix == ".md" else _RST
        for found in pattern.finditer(page.read_text(encoding="utf-8")):
            text = textwrap.dedent(found["body"]).strip("\n") + "\n"
            kind = found["kind"] or ("shell" if text.startswith(SHELL) else "log")
            yield Block(str(page.relative_to(ROOT)), kind, text)


def of_kind(kind):
    return [block for block in blocks() if block.kind == kind]
