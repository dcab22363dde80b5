"""Reads what crawls have written."""

import json


def lines(path):
    """All lines, in the order in which they were written. Each must be complete."""
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]
