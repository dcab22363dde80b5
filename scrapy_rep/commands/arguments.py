"""The arguments of subcommands: their number, and files, which may be standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from scrapy.exceptions import UsageError

from scrapy_rep.commands.terminal import scheme_hint
from scrapy_rep.protocol.lexer import whole_lines


def only_argument(args: list[str], usage: str) -> str:
    """Return the only argument. Raises UsageError with ``usage`` if there isn't exactly one."""
    if len(args) != 1:
        raise UsageError(usage, print_help=False)
    return args[0]


def read_file(path: str) -> bytes:
    """Return the content of a file; ``-`` means standard input.

    Raises UsageError if the file can't be read.
    """
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        hint = scheme_hint(path) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"{path}: {error.strerror}{hint}", print_help=False) from None


def read_robotstxt(path: str, max_size: int) -> bytes:
    """Return the content of a robots.txt file, cut to ``max_size`` bytes as in a crawl (SPEC F-13).

    Raises UsageError if the file can't be read.
    """
    body = read_file(path)
    return whole_lines(body, max_size) if len(body) > max_size else body


def displayed_name(path: str) -> str:
    """Return ``path`` as the output shows it: ``-`` becomes ``standard input``."""
    return "standard input" if path == "-" else path
