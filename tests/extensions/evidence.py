"""Reads what crawls have written."""

import gzip
import json


def lines(path):
    """All lines, in the order in which they were written. Each must be complete."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]
