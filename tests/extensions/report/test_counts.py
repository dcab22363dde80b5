"""What a report is made of is bounded, whatever a site does."""

from __future__ import annotations

import os
import tracemalloc

import pytest

from scrapy_rep.extensions.report import counts as counts_module
from scrapy_rep.extensions.report import page, usage_counts
from scrapy_rep.extensions.report.counts import Counts
from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.outcome import Available, Evidence, Unreachable
from scrapy_rep.protocol.policy import Policy
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from tests.extensions.report.reports import report_of

RULES = b"User-agent: *\nDisallow: /\nCrawl-delay: 7\n"
NOW = 1e9


def available(origin, body, at=NOW):
    copy = Available(body, Evidence(at, f"{origin}/robots.txt", 200, size=len(body)))
    return Record(SiteFile.from_key(origin), copy, copy)


def learn(counts, record, now=NOW):
    return counts.count_lookup(record, Policy().access(record, now))


def verdict(origin, line=2):
    rule = Rule(False, "/", f"/{line}", line)
    return Verdict(False, Reason.RULE, rule, f"{origin}/robots.txt")


def test_counts_are_bounded(monkeypatch):
    monkeypatch.setattr(counts_module, "MAX_ORIGINS", 3)
    monkeypatch.setattr(counts_module, "MAX_DROPS", 3)
    counts = Counts()
    for number in range(6):
        origin = f"http://{number}.example"
        counts.count_forbidden(f"{origin}/a", origin, verdict(origin))
    assert len(counts.origins) == 4
    assert counts.origins["(further origins)"].dropped == 3
    *_, beyond = counts.drops.values()
    assert (len(counts.drops), beyond.requests, beyond.rule) == (4, 3, None)


def test_urls_are_a_sample_of_each_rule(monkeypatch):
    monkeypatch.setattr(counts_module, "MAX_URLS", 25)
    counts = Counts()
    for line in range(5):
        for number in range(30):
            url = f"http://user:secret@a.example/{line}/{number % 20}{'x' * 1000}"
            counts.count_forbidden(url, "http://a.example", verdict("http://a.example", line))
    sizes = [len(row.urls) for row in counts.drops.values()]
    assert sizes == [10, 10, 5, 1, 1]
    assert all(row.requests == 30 for row in counts.drops.values())
    urls = [url for row in counts.drops.values() for url in row.urls]
    assert {len(url) for url in urls} == {counts_module.MAX_URL}
    assert len(set(urls)) == len(urls)
    assert "secret" not in "".join(urls)


def test_texts_are_cut_and_those_that_dropped_nothing_are_let_go_of(monkeypatch):
    monkeypatch.setattr(counts_module, "MAX_TEXT", 100)
    monkeypatch.setattr(counts_module, "MAX_TEXTS", 250)
    counts = Counts()
    rows = []
    for number in range(4):
        origin = f"http://{number}.example"
        rows.append(learn(counts, available(origin, b"%d" % number * 150)))
        counts.count_forbidden(f"{rows[0].origin}/a", rows[0].origin, verdict(rows[0].origin))
    held = counts.as_dict()["texts"]
    assert list(held) == [rows[3].sha256, rows[0].sha256]
    assert held[rows[0].sha256] == {"text": "0" * 100, "left_out": 50}


def test_licenses_are_bounded(monkeypatch):
    monkeypatch.setattr(usage_counts, "MAX_KINDS", 3)
    counts = Counts()
    for number in range(6):
        body = f"License: https://a/{number}\nUser-agent: *\nContent-Usage: train-ai=y\n"
        said = RobotsTxt.parse(body.encode()).usage("https://a.example/", "mybot")
        counts.usage.add("https://a.example", said, {"search": "unknown"}, refused=False)
    counted = counts.usage.as_dict()
    assert [row["pages"] for row in counted["licenses"]] == [3, 1, 1, 1]
    assert [row["pages"] for row in counted["statements"]] == [6]
    assert counted["results"] == [{"purpose": "search", "result": "unknown", "pages": 6}]


def test_an_origin_that_recovers_has_both_times_and_the_cause():
    counts = Counts()
    down = Record(
        SiteFile.from_key("http://a"),
        Unreachable(Evidence(NOW, "u", 503)),
        None,
        NOW,
        0.0,
        1,
        NOW + 9,
    )
    assert learn(counts, down).unreachable_until is None
    row = learn(counts, available("http://a", b"", NOW + 4), NOW + 5)
    assert row.unreachable_since == "2001-09-09T01:46:40.000Z"
    assert row.unreachable_until == "2001-09-09T01:46:44.000Z"
    assert row.unreachable_cause == "status 503"


def test_the_text_whose_rules_hold_is_told_with_its_own_time():
    counts = Counts()
    copy = available("http://a", RULES).copy
    day = 86_400.0
    last = Evidence(NOW + 40 * day, "u", error="connection closed")
    record = Record(
        SiteFile.from_key("http://a"),
        Unreachable(last),
        copy,
        NOW + day,
        39 * day,
        9,
        NOW + 40 * day + 60,
    )
    row = learn(counts, record, NOW + 40 * day)
    assert (row.outcome, row.error) == ("unreachable", "connection closed")
    assert row.fetched == "2001-09-09T01:46:40.000Z"
    assert (row.size, row.sha256 is None) == (len(RULES), False)
    # As long as it holds nothing else but that all is disallowed, no text does.
    early = Record(SiteFile.from_key("http://a"), Unreachable(last), copy, NOW, 0.0, 1, NOW + 60)
    row = learn(counts, early, NOW + 1)
    assert (row.fetched, row.sha256) == (None, None)


def test_nothing_grows_beyond_its_bounds_whatever_a_site_does(monkeypatch):
    for name in ("MAX_ORIGINS", "MAX_DROPS", "MAX_URLS"):
        monkeypatch.setattr(counts_module, name, 500)
    counts = Counts()
    host = "h" * 8_000

    def met(numbers):
        for number in numbers:
            origin = f"http://{number}.{host}"
            rule = Rule(False, "", f"/{number}{'x' * 16_000}", number)
            sent = Verdict(False, Reason.RULE, rule, f"{origin}/robots.txt")
            counts.count_forbidden(f"{origin}/{'y' * 8_000}", origin, sent)
            if number % 70 == 0:
                learn(counts, available(f"http://{number}", os.urandom(500_000)))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = met(range(5_000))
    grown = met(range(5_000, 6_000)) - before
    tracemalloc.stop()
    assert before < 8 * 1024**2
    assert grown < 200_000
    assert len(page.render(report_of(counts))) < 6 * 1024**2


@pytest.mark.parametrize("byte", [b"\nx", b"<", b"\x1b", b"\xff", "\U000e0001".encode()])
def test_texts_on_the_page_are_bounded_however_they_are_escaped(byte, monkeypatch):
    monkeypatch.setattr(page, "MAX_TEXTS", 1024**2)
    counts = Counts()
    for number in range(20):
        learn(counts, available(f"http://{number}", b"%02d" % number + byte * 70_000))
    text = page.render(report_of(counts))
    assert len(text) < 1.1 * 1024**2
    shown = text.count("<pre>")
    assert f"or too long ones: {20 - shown}." in text
