"""What a subcommand of ``scrapy robots`` is, its options, and the arguments that it takes."""

import argparse
import math
import sys
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from scrapy.exceptions import UsageError

from scrapy_rep.commands.crawl import CoroutineRunner
from scrapy_rep.protocol.lexer import whole_lines
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.origin import Origin, origin_of
from scrapy_rep.protocol.usage import PURPOSES
from scrapy_rep.utils.text import printable, without_credentials


class Subcommand(NamedTuple):
    """A subcommand: ``options`` are those of OPTIONS, ``run`` returns the exit status."""

    name: str
    arguments: str
    description: str
    options: tuple[str, ...]
    run: Callable[[list[str], argparse.Namespace, CoroutineRunner], int]


def _limit(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    if (name == "hours") != value.endswith("%") and name in {"hours", "disallowed", "unreachable"}:
        with suppress(ValueError):
            if 0 <= (number := float(value.removesuffix("%"))) < math.inf:
                return name, number
    raise argparse.ArgumentTypeError(
        f"must be a maximum, such as disallowed=10%, unreachable=0% or hours=8, not {text!a}"
    )


# No line of help may end with a colon, as Scrapy would format it as a heading.
OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--agent": {
        "metavar": "TOKEN",
        "help": "product token or User-Agent of the crawler, instead of that of the settings",
    },
    "--spider": {
        "metavar": "NAME",
        "help": "decide as for this spider of the project, by its custom_settings and attributes",
    },
    "--urls-from": {
        "metavar": "FILE",
        "help": "read URLs from FILE, or standard input (-), one per line; lines that start with "
        "# are comments",
    },
    "--file": {
        "metavar": "FILE",
        "help": "read the rules from FILE, or standard input (-), not from the site",
    },
    "--purpose": {
        "metavar": "PURPOSE",
        "action": "append",
        "choices": PURPOSES,
        "default": [],
        "help": f"also show the result for this purpose ({', '.join(PURPOSES)})",
    },
    "--fail-if": {
        "metavar": "LIMIT",
        "action": "append",
        "type": _limit,
        "default": [],
        "help": "exit with status 1 if more than disallowed=PERCENT%% or unreachable=PERCENT%% of "
        "the URLs are, or if it takes more than hours=NUMBER",
    },
    "--fresh": {
        "action": "store_true",
        "help": "fetch robots.txt even if it is stored; the store is not changed",
    },
    "--json": {"action": "store_true", "help": "print JSON"},
}
"""The options of all subcommands, with the arguments of argparse's ``add_argument``."""


def usage_error(message: str) -> UsageError:
    """Return the error that ends the command with ``message``."""
    return UsageError(message, print_help=False)


def only_argument(args: list[str], usage: str) -> str:
    """Return the only argument. Raises UsageError with ``usage`` if there isn't exactly one."""
    if len(args) != 1:
        raise usage_error(usage)
    return args[0]


def check_url(url: str) -> Origin:
    """Return the origin of ``url``. Raises UsageError if it has none."""
    try:
        return origin_of(url)
    except ValueError as error:
        raise usage_error(invalid_url_text(url, error)) from None


def invalid_url_text(url: str, error: ValueError) -> str:
    """Return a message with ``url``, without its credentials, and ``error``."""
    return f"{printable(without_credentials(url))}: {printable(str(error))}"


def read_file(path: str) -> tuple[str, bytes]:
    """Return the name of a file for the output, and its content. Raises UsageError.

    ``-`` means standard input.
    """
    try:
        if path == "-":
            return "standard input", sys.stdin.buffer.read()
        return path, Path(path).read_bytes()
    except OSError as error:
        raise usage_error(f"{without_credentials(path)}: {error.strerror}") from None


def urls_of(command: str, urls: list[str], opts: argparse.Namespace) -> list[str]:
    """Return ``urls`` and those of ``--urls-from``. Raises UsageError if there are none."""
    if opts.urls_from:
        _, content = read_file(opts.urls_from)
        lines = content.removeprefix(BOM_UTF8).splitlines()
        texts = (line.decode("utf-8", "surrogateescape").strip() for line in lines)
        urls = [*urls, *(text for text in texts if text and not text.startswith("#"))]
    if not urls:
        raise usage_error(f"{command} requires URLs")
    return urls


def read_robotstxt(path: str) -> tuple[str, bytes]:
    """Return what ``read_file`` does, cut to MAX_BODY_BYTES as in a crawl (SPEC F-13)."""
    name, body = read_file(path)
    return name, whole_lines(body, MAX_BODY_BYTES) if len(body) > MAX_BODY_BYTES else body
