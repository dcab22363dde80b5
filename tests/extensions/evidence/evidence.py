"""Reads what crawls have written, as plain values."""

import json
from argparse import Namespace

from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

OF_URLS = {"page", "failed", "drop"}


def lines(path):
    """All lines, in the order in which they were written."""
    if path.is_dir():
        return [
            json.loads(line)
            for part in sorted(path.glob("part-*.jsonl"))
            for line in part.read_bytes().splitlines()
        ]
    return [json.loads(body) for _, kind, _, body in records(path) if kind == "metadata"]


def records(path):
    """Identifier, type, what it refers to and content of each record."""
    found = []
    for part in sorted(path.parent.glob(f"{path.name.removesuffix('.warc.gz')}*.warc.gz")):
        with part.open("rb") as file:
            for record in ArchiveIterator(file):
                header = record.rec_headers.get_header
                body = record.content_stream().read()
                found.append(
                    (header("WARC-Record-ID"), record.rec_type, header("WARC-Refers-To"), body)
                )
    return found


def of(path, url):
    """What was written of a URL."""
    return [line for line in lines(path) if line.get("url") == url and line["kind"] in OF_URLS]


def is_sound(path):
    """What warcio's own checker says."""
    return Checker(Namespace(inputs=[str(path)], verbose=False)).process_all() == 0
