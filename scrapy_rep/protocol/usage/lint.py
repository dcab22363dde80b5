"""The linter of usage lines: the lines of robots.txt with usage preferences."""

from collections.abc import Iterator
from typing import Final

from scrapy_rep.protocol.lexer import Line, as_text
from scrapy_rep.protocol.usage import content_signal, content_usage
from scrapy_rep.protocol.usage.license import license_in
from scrapy_rep.protocol.usage.rules import path_and_statement, source_of
from scrapy_rep.protocol.usage.statement import CONTENT_USAGE, LICENSE, UNKNOWN

CODES: Final = {
    "usage-foreign": "no label of this field that is known: it says nothing",
    "usage-retired": "a label that draft-ietf-aipref-vocab-08 no longer has: it says nothing",
    "usage-unreadable": "it can't be parsed, and says nothing",
    "usage-value": "a value that is neither of the two that there are: it says nothing",
    "usage-empty": "a path and nothing behind it: what shorter paths say doesn't hold for it",
    "usage-without-group": "a usage line before any User-agent line belongs to nobody",
    "usage-above-groups": "a Content-Signal above the first User-agent line: a 'no' counts for "
    "crawlers whose group has no Content-Signal (scrapy-rep's own decision), a 'yes' for nobody",
    "usage-between-names": "a usage line between User-agent lines is for all of them",
    "usage-misspelt": "a field that is Content-Signal with a letter too many, and read as that",
    "usage-abandoned": "of draft-canel-robots-ai-control-00, abandoned: an Allow or Disallow, too",
    "relative-license": "a license takes a full URL",
}
"""The kinds of problems of usage lines, with their messages."""

ABANDONED: Final = frozenset({b"allowaitraining", b"disallowaitraining"})


def findings_in(line: Line) -> Iterator[tuple[str, str]]:
    """Yield a code and a detail for each problem of a usage line."""
    source = source_of(line)
    if source == LICENSE:
        if not license_in(as_text(line.value), line.number):
            yield "relative-license", as_text(line.value)
        return
    if line.field.lower() == b"content-signals":
        yield "usage-misspelt", ""
    path, statement = path_and_statement(line.value)
    if path and not statement:
        yield "usage-empty", as_text(path)
    elif source == CONTENT_USAGE:
        yield from _usage_findings(statement)
    else:
        yield from _signal_findings(statement)


def _usage_findings(statement: bytes) -> Iterator[tuple[str, str]]:
    try:
        values = content_usage.values_by_label(statement)
    except content_usage.NotADictionaryError as error:
        yield "usage-unreadable", f"{as_text(statement)} ({error})"
        return
    for label, value in values.items():
        if label in content_usage.RETIRED:
            yield "usage-retired", label
        elif label not in content_usage.LABELS:
            yield "usage-foreign", label
        elif value == UNKNOWN:
            yield "usage-value", label


def _signal_findings(statement: bytes) -> Iterator[tuple[str, str]]:
    pairs = content_signal.pairs_of(statement)
    if not pairs:
        yield "usage-unreadable", as_text(statement)
    for key, value in pairs:
        if key not in content_signal.LABELS:
            if key not in content_signal.OTHERS:
                yield "usage-foreign", key
        elif value not in content_signal.VALUES:
            yield "usage-value", f"{key}={value}"
