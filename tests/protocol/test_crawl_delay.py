"""Crawl-delay and Request-rate: what is read, and what is left alone."""

import pytest

from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in
from scrapy_rep.protocol.parser import RobotsTxt


def asked(*lines, tokens=("testbot",)):
    robots = RobotsTxt.parse("\n".join(("User-agent: testbot", *lines)).encode())
    delay = delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS))
    assert delay == delay_in(robots.fields_for(*tokens))
    return delay


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("Request-rate: 10/1H", 360),
        ("Request-rate: 1 / 10 s", 10),
        ("Request-rate: 1/10m 1300-1659", 600),
        ("Request-rate: 100/10", 0.1),
        ("Request-rate: 1/0000000007", 7),
        ("Crawl-delay: 86400", 86400),
        ("Crawl-delay: 0000000002.5000000000", 2.5),
    ],
)
def test_a_well_formed_line_is_read(line, seconds):
    delay = asked(line)
    assert delay.seconds == pytest.approx(seconds)
    assert delay.field.line == 2


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (
            "Crawl-delay",
            ["", "0", "0.0", "-1", "+1", "1e3", "nan", "inf", "Infinity", "ten", "10s", "10 20", "1,5",
             "0x10", "1_000", "5.", ".", "٣", "86401", "00000000002", "2.50000000000"],
        ),
        (
            "Request-rate",
            ["", "1", "/", "1/", "/5", "0/5", "1/0", "-1/5", "1/-5", "1/5w", "1/5ss", "1.5/5",
             "1/5 1300", "1/2d", "1/5 at night", "٣/5", "1/00000000007"],
        ),
    ],
)  # fmt: skip
def test_a_malformed_line_asks_for_nothing(field, values):
    assert [value for value in values if asked(f"{field}: {value}") is not None] == []


def test_the_longest_of_several_counts():
    delay = asked(
        "Crawl-delay: 2", "Request-rate: 1/7", "Host: 9", "Crawl-delay: 5", "Crawl-delay: x"
    )
    assert delay.seconds == 7
    assert delay.field.name == "request-rate"


def test_a_delay_is_for_the_user_agents_right_above_it():
    body = b"""User-agent: slow
Crawl-delay: 20

User-agent: a
User-agent: b
Sitemap: https://a.example/
User-agent: c
Crawl-delay: 3
User-agent: *
Disallow: /private
Disallow: /more
Crawl-delay: 1
"""
    robots = RobotsTxt.parse(body)
    delays = {
        token: delay.seconds
        for token in ("slow", "a", "b", "c", "other")
        if (delay := delay_in(robots.fields_for(token, names=DELAY_FIELDS)))
    }
    assert delays == {"slow": 20, "a": 3, "b": 3, "c": 3, "other": 1}
    # Of rules it is one group, as G-7 has it.
    assert not robots.verdict("https://a.example/private", "slow").allowed
