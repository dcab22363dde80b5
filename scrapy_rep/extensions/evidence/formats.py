"""The format of the evidence, by its path: WARC (``.warc.gz``), or JSON Lines in a directory."""

import tempfile
from pathlib import Path
from typing import Final

from scrapy_rep.exceptions import SettingsError
from scrapy_rep.extensions.evidence.jsonl import JsonLines
from scrapy_rep.extensions.evidence.parts import Found, Parts

_TRIAL: Final = 64 * 1024
"""Number of bytes written to a temporary file at the start, to check that there is space."""


def open_evidence(path: Path, common_members: str = "") -> Parts:
    """Return the evidence at ``path``, not yet opened. Raises ImportError if warcio is needed."""
    if not path.name.endswith(".warc.gz"):
        return JsonLines(path, common_members)
    from scrapy_rep.extensions.evidence.warc import Warc

    return Warc(path, common_members)


def open_to_write(path: Path, common_members: str) -> Parts:
    """Return the evidence at ``path``, after a check that it can be written, with some space left.

    The directory for JSON Lines is created if it doesn't exist, but not its parent. Raises
    SettingsError if ``path`` can't be written, or warcio is required and not installed.
    """
    try:
        evidence = open_evidence(path, common_members)
        folder = path if isinstance(evidence, JsonLines) else path.parent
        if folder is path:
            folder.mkdir(exist_ok=True)
        elif path.exists():
            path.open("ab").close()
        with tempfile.TemporaryFile(dir=folder, buffering=0) as trial:
            trial.write(bytes(_TRIAL))
    except ImportError:
        why = "WARC takes warcio, which isn't installed: pip install scrapy-rep[warc]"
    except FileExistsError:
        why = "it is a file, not a directory, and its name does not end in .warc.gz"
    except OSError as error:
        why = f"it can't be written: {error.strerror}"
    else:
        return evidence
    raise SettingsError(f"REP_EVIDENCE is {str(path)!r}: {why}")


def find_lines(path: Path, url: str) -> tuple[list[Found], set[Path]]:
    """Return the lines about ``url``, sorted by time, and the parts that are damaged.

    Raises OSError if ``path`` is missing or can't be read, and ImportError without warcio.
    """
    damaged: set[Path] = set()
    found = list(open_evidence(path).find(url, damaged))
    return sorted(found, key=lambda each: str(each.values.get("time"))), damaged
