"""The literal blocks of the docs, and what kind each of them is."""

import logging
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


def masked(text):
    """Return a log line without what differs from crawl to crawl: figures, hosts, names, cases."""
    text = re.sub(r"https?://[^/\s>]+", "ORIGIN", " ".join(text.split()))
    text = re.sub(r"^((?:[A-Z]+: )?)[\w.]+ answered", r"\1HOST answered", text)
    text = re.sub(r"records in /\S+/robots.sqlite", "records in STORE", text)
    text = re.sub(r"Disabled (<class \S+>|\w+): ", "Disabled: ", text)
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r"/private/\w+", "/private", text))


def lines_of(block):
    """Return the lines of the log in a block. Those that are too long for the page are wrapped."""
    return [masked(line) for line in re.split(r"\n(?=[A-Z]+: )", block.text.strip())]


def logged_by(crawls):
    """Return the lines of the log of crawls, each with its level and without."""
    return {
        masked(f"{prefix}{record.getMessage()}")
        for crawl in crawls
        for record in crawl.records
        for prefix in ("", f"{logging.getLevelName(record.levelno)}: ")
    }


def sections(page):
    """Return the text of each subsection of a page by its heading, without indents."""
    heads = re.split(r"(?m)^(.+)\n-+$", (ROOT / page).read_text(encoding="utf-8"))[1:]
    return {head: unindented(text) for head, text in zip(heads[::2], heads[1::2], strict=True)}


def unindented(text):
    return re.sub(r"(?m)^ +", "", text)
