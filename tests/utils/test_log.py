"""What repeats is bounded in the log: each line of ours goes through one class, which counts it."""

import ast
import logging
from pathlib import Path

import pytest

import scrapy_rep
from scrapy_rep.utils.log import MAX_LINES, LimitedLogger
from tests.crawling.crawl import crawl
from tests.crawling.web import answer, robots

PACKAGE = Path(scrapy_rep.__file__).parent
FURTHER = " - further lines of this kind are logged at DEBUG level"


def test_every_logger_limits_its_lines():
    made = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logging.getLogger"
    }
    assert made == {"utils/log.py"}


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.DEBUG)
    return lambda: [(record.levelno, record.getMessage()) for record in caplog.records]


def test_lines_of_a_kind_are_logged_ten_times_then_at_debug(lines):
    logger = LimitedLogger("scrapy_rep.x")
    for number in range(12):
        logger.warning("site %d", number)
    logger.info("another")
    assert lines() == [
        *((logging.WARNING, f"site {number}") for number in range(9)),
        (logging.WARNING, f"site 9{FURTHER}"),
        *((logging.DEBUG, f"site {number}") for number in (10, 11)),
        (logging.INFO, "another"),
    ]


async def test_each_crawl_logs_ten_lines_of_a_kind(web):
    slow = [web.site(robots("User-agent: *\nCrawl-delay: 0.1\n")) for _ in range(13)]
    failing = [web.site(answer(503)) for _ in range(12)]
    for _ in range(2):
        result = await crawl(*(site.url("/") for site in slow + failing))
        for kind, level in ((" asks for ", logging.INFO), (" is unreachable", logging.WARNING)):
            told = [
                record
                for record in result.records
                if record.levelno == level
                and record.getMessage().startswith("robots.txt of http")
                and kind in record.getMessage()
            ]
            assert len(told) == MAX_LINES
            assert told[-1].getMessage().endswith(FURTHER)
