"""What lint says of usage lines."""

from __future__ import annotations

import pytest

from scrapy_rep.protocol.lint import CODES, lint


def codes(*lines, head="User-agent: *"):
    found = lint("\n".join((*([head] if head else []), *lines)).encode()).findings
    assert all(finding.code in CODES and finding.text for finding in found)
    return [(finding.line, finding.code) for finding in found]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("Content-Usage: train-ai=n, search=y, ai-use=y;x=1", None),
        ("Content-Usage: /x train-ai=n", None),
        ("Content-Usage: ai=n", "usage-retired"),
        ("Content-Usage: ai-train=no", "usage-foreign"),
        ("Content-Usage: train-ai=no", "usage-value"),
        ("Content-Usage: train-ai", "usage-value"),
        ("Content-Usage: train-ai = n", "usage-unreadable"),
        ("Content-Usage: /r/ ai=n train-ai=n", "usage-unreadable"),
        ("Content-Usage: Train-AI=n", "usage-unreadable"),
        ("Content-Usage: train-ai=n,", "usage-unreadable"),
        ("Content-Usage: /x", "usage-empty"),
        ("Content-Usages: train-ai=n", "unknown-field"),
        ("Content-Signal: search=yes,ai-train=no,use=reference", None),
        ("Content-Signal: /x search=yes", None),
        ("Content-Signals: search=yes", "usage-misspelt"),
        ("Content-Signal: ai-retrieval=no", "usage-foreign"),
        ("Content-Signal: ai-train=n", "usage-value"),
        ("Content-Signal: no", "usage-unreadable"),
        ("License: https://a.example/l.xml", None),
        ("License: /l.xml", "relative-license"),
    ],
)
def test_a_line(line, code):
    assert codes(line, "Allow: /") == ([(2, code)] if code else [])


def test_a_line_of_the_abandoned_draft():
    assert (2, "usage-abandoned") in codes("DisallowAITraining: /")


def test_a_line_of_nobody():
    lines = ["Content-Usage: train-ai=n", "License: https://a.example/l.xml", "User-agent: *"]
    assert codes(*lines, head="") == [(1, "usage-without-group")]


def test_a_signal_above_the_first_group():
    lines = ["Content-Signal: ai-train=no", "Content-Signals: search=yes", "User-agent: *"]
    assert codes(*lines, head="") == [
        (1, "usage-above-groups"),
        (2, "usage-misspelt"),
        (2, "usage-above-groups"),
    ]


def test_a_line_between_names():
    lines = ["Content-Signal: search=no", "User-agent: b", "Content-Usage: train-ai=n", "Allow: /"]
    assert codes(*lines, "User-agent: c", "Allow: /") == [(2, "usage-between-names")]


def test_a_usage_line_after_a_rule_is_between_no_names():
    lines = ("User-agent: a", "Disallow: /x", "Content-Usage: train-ai=n", "User-agent: b")
    assert codes(*lines, "Allow: /") == []
