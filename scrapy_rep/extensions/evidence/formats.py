"""Chooses the form of the evidence by its path, and checks that the path can be written."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.evidence.jsonl import JsonLines
from scrapy_rep.extensions.evidence.writer_thread import EvidenceWriter
from scrapy_rep.extensions.robots_file import as_json

WARC: Final = ".warc.gz"
_TRIAL: Final = 64 * 1024
"""Number of bytes written to a temporary file at the start, to check that there is space."""


def common_members(settings: dict[str, Any]) -> str:
    """Return the members that are the same in all lines, as JSON without the braces.

    They are a name of the crawl, the version of scrapy-rep, and a hash of ``settings``.
    """
    digest = sha256(as_json(dict(sorted(settings.items()))).encode()).hexdigest()
    members = {"crawl": uuid4().hex[:12], "version": version("scrapy-rep"), "settings": digest}
    return as_json(members)[1:-1]


def make_evidence_writer(path: Path, tail: str) -> EvidenceWriter:
    """Return the object that writes evidence to ``path``, as WARC (.warc.gz) or JSON Lines.

    The directory for JSON Lines is created if it doesn't exist. Raises SettingsError if ``path``
    can't be written, or warcio is required and not installed.
    """
    form: Callable[[Path, str], EvidenceWriter] = JsonLines
    folder = path
    if path.name.endswith(WARC):
        folder = path.parent
        try:
            from scrapy_rep.extensions.evidence.warc import Warc
        except ImportError:
            raise SettingsError(
                f"REP_EVIDENCE is {str(path)!r}: WARC takes warcio, which isn't installed: "
                "pip install scrapy-rep[warc]"
            ) from None
        form = Warc
    try:
        if form is JsonLines:
            folder.mkdir(exist_ok=True)
        elif path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=folder, buffering=0) as trial:
            trial.write(bytes(_TRIAL))
    except OSError as error:
        why = f"it can't be written: {error.strerror}"
        if isinstance(error, FileExistsError):
            why = "it is a file, not a directory, and its name does not end in .warc.gz"
        raise SettingsError(f"REP_EVIDENCE is {str(path)!r}: {why}") from None
    return form(path, tail)
