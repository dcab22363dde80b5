"""What a report is made of is bounded, whatever a site does."""

import os
import tracemalloc

import pytest
from scrapy import Request

from scrapy_rep.extensions import report_counts, report_page
from scrapy_rep.extensions.report_counts import Counts
from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.outcome import Available, Evidence, Unreachable
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from tests.extensions.report.reports import report_of

RULES = b"User-agent: *\nDisallow: /\nCrawl-delay: 7\n"
NOW = 1e9
DAY = 86_400.0


@pytest.fixture
def counts(clock):
    clock.advance(NOW - clock.time())
    return Counts(Policy())


def available(origin, body, at=NOW):
    copy = Available(body, Evidence(at, f"{origin}/robots.txt", 200, size=len(body)))
    return Record(origin_of(origin), copy, copy)


def learn(counts, record):
    counts.count_fetched(record, stored=True)
    return counts.row(str(record.origin))


def drop(counts, url, line=2, path=""):
    origin = "/".join(url.split("/")[:3])
    rule = Rule(False, "/", f"/{line}{path}", line)
    verdict = Verdict(False, Reason.RULE, rule, f"{origin}/robots.txt")
    counts.count_forbidden(Request(url), verdict, dropped=True)


def test_counts_are_bounded(counts, monkeypatch):
    monkeypatch.setattr(report_counts, "MAX_ORIGINS", 3)
    monkeypatch.setattr(report_counts, "MAX_DROPS", 3)
    for number in range(6):
        drop(counts, f"http://{number}.example/a")
    assert len(counts.origins) == 4
    assert counts.origins["(further origins)"].dropped == 3
    beyond = max(counts.drops.values(), key=lambda row: row["requests"])
    assert (len(counts.drops), beyond["requests"], beyond["rule"]) == (4, 3, None)


def test_urls_are_a_sample_of_each_rule(counts):
    for line in range(5):
        for number in range(30):
            drop(counts, f"http://user:secret@a.example/{line}/{number % 20}{'x' * 1000}", line)
    numbers = [(row["requests"], len(row["urls"])) for row in counts.drops.values()]
    assert numbers == 5 * [(30, 10)]
    urls = [url for row in counts.drops.values() for url in row["urls"]]
    assert {len(url) for url in urls} == {report_counts.MAX_URL}
    assert len(set(urls)) == len(urls)
    assert "secret" not in "".join(urls)


def test_texts_are_cut_and_those_that_dropped_nothing_are_let_go_of(counts, monkeypatch):
    monkeypatch.setattr(report_counts, "MAX_TEXT", 100)
    monkeypatch.setattr(report_counts, "MAX_TEXTS", 250)
    counts = Counts(Policy())
    for number in range(4):
        learn(counts, available(f"http://{number}.example", b"%d" % number * 150))
        drop(counts, "http://0.example/a")
    known = list(counts.origins.values())
    held = counts.as_dict()["texts"]
    assert list(held) == [known[3].sha256, known[0].sha256]
    assert held[known[0].sha256] == {"text": "0" * 100, "left_out": 50}


def test_statements_are_counted_without_names_that_are_not_known(counts):
    for number in range(6):
        body = f"License: https://a/{number}\nUser-agent: *\nContent-Usage: use{number}=y\n"
        said = RobotsTxt.parse(body.encode()).usage("https://a.example/", "mybot")
        counts.count_usage(said, {"search": "unknown"}, refused=False)
    counted = counts.as_dict()["usage"]
    assert [row["pages"] for row in counted["statements"]] == [6]
    assert counted["results"] == [{"purpose": "search", "result": "unknown", "pages": 6}]


def test_the_text_whose_rules_hold_is_told_with_its_own_time(counts, clock):
    copy = available("http://a", RULES).copy
    late = NOW + 40 * DAY
    failed = Unreachable(Evidence(late, "u", error="connection closed"))
    file = origin_of("http://a")
    # As long as it holds nothing else but that all is disallowed, no text does.
    row = learn(counts, Record(file, failed, copy, NOW, 0.0, 1, NOW + 60))
    assert (row.fetched, row.sha256) == (None, None)
    clock.advance(40 * DAY)
    row = learn(counts, Record(file, failed, copy, NOW + DAY, 39 * DAY, 9, late + 60))
    assert (row.outcome, row.error) == ("unreachable", "connection closed")
    assert row.fetched == "2001-09-09T01:46:40.000Z"
    assert (row.size, row.sha256 is None) == (len(RULES), False)


def test_nothing_grows_beyond_its_bounds_whatever_a_site_does(counts, monkeypatch):
    for name in ("MAX_ORIGINS", "MAX_DROPS"):
        monkeypatch.setattr(report_counts, name, 500)

    def met(numbers):
        for number in numbers:
            counts.row(f"http://{number}.{'h' * 8_000}")
            drop(counts, f"http://{number}.example/{'y' * 8_000}", number, "x" * 16_000)
            if number % 70 == 0:
                learn(counts, available(f"http://{number}", os.urandom(500_000)))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = met(range(5_000))
    grown = met(range(5_000, 6_000)) - before
    tracemalloc.stop()
    assert before < 8 * 1024**2
    assert grown < 200_000
    assert len(report_page.render(report_of(counts))) < 6 * 1024**2


@pytest.mark.parametrize("byte", [b"\nx", b"<", b"\x1b", b"\xff", "\U000e0001".encode()])
def test_texts_on_the_page_are_bounded_however_they_are_escaped(byte, counts, monkeypatch):
    monkeypatch.setattr(report_counts, "MAX_TEXTS", 256 * 1024)
    counts = Counts(Policy())
    for number in range(20):
        learn(counts, available(f"http://{number}", b"%02d" % number + byte * 70_000))
    assert len(report_page.render(report_of(counts))) < 2 * 1024**2
