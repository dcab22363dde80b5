"""What subcommands are given: so many arguments, and files that may be standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from scrapy.exceptions import UsageError

from scrapy_rep.commands.terminal import with_scheme
from scrapy_rep.protocol.lexer import whole_lines


def one(args: list[str], usage: str) -> str:
    """Return the only argument. Raises UsageError."""
    if len(args) != 1:
        raise UsageError(usage, print_help=False)
    return args[0]


def read_file(path: str) -> bytes:
    """Return the content of a file; ``-`` is standard input. Raises UsageError."""
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        hint = with_scheme(path) if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"{path}: {error.strerror}{hint}", print_help=False) from None


def read_robotstxt(path: str, max_size: int) -> bytes:
    """Return as much of the robots.txt in a file as counts of one that is fetched (SPEC F-13)."""
    body = read_file(path)
    return whole_lines(body, max_size) if len(body) > max_size else body


def name_of(path: str) -> str:
    """Return the name of a file for the output."""
    return "standard input" if path == "-" else path
