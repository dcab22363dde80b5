"""What the crawl tests share: a web of sites, and the table of faults for who asks for it."""

from __future__ import annotations

import pytest

from tests.crawl.web import Web

_FAULTS = []


@pytest.fixture(scope="session")
def web():
    web = Web()
    yield web
    web.close()


@pytest.fixture(scope="session")
def fault_table():
    return _FAULTS


def pytest_terminal_summary(terminalreporter, config):
    if not config.getoption("--fault-table"):
        return
    terminalreporter.section("robots.txt faults")
    asked = {"rules": "its rules", "all": "no restrictions", "none": "nothing"}
    terminalreporter.write_line(
        f"{'fault':48} {'to robots.txt':>13}  {'pages on the wire':19} asked"
    )
    for fault, robots_requests, pages in _FAULTS:
        terminalreporter.write_line(
            f"{fault.name:48} {robots_requests:13}  {' '.join(pages) or '-':19}"
            f" {asked[fault.asks]} ({fault.source})"
        )
