"""Real robots.txt files, where they are to be had: see shared/corpus/README.md."""

import base64
import gzip
import json
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def folder():
    """Return the corpus's folder, or None where there is none."""
    named = os.environ.get("REP_CORPUS")
    path = Path(named) if named else ROOT.parent / "shared" / "corpus"
    return path if (path / "files.jsonl.gz").exists() else None


def read(name):
    """Yield (host, body, urls) of `files` or `sites`."""
    with gzip.open(folder() / f"{name}.jsonl.gz") as lines:
        for line in lines:
            site = json.loads(line)
            if "robots_base64" in site:
                body = base64.b64decode(site["robots_base64"])
            else:
                body = site["robots"].encode()
            yield site.get("host"), body, site.get("urls", [])
