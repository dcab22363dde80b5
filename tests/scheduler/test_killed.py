"""A crawl of many sites that is killed, and gone on with."""

from collections import Counter

import pytest

from tests.benchmarks.broad_crawl import OURS, crawl, start, urls_of, web_of
from tests.waiting import wait_until

STORIES = ["rules", "rules", "missing", "recovers", "failing", "hang", "slow"]
ORIGINS = 140
AFTER = 150
"""Outcomes before the kill: enough that the duplicates filter has written its first requests down."""
SETTINGS = {
    **OURS,
    "REP_STORE": "memory://",
    "REP_TIMEOUT": 3,
    "REP_RETRY_DELAY": 1,
    "REP_RETRY_DELAY_MAX": 2,
    "REP_DEFER_TIMEOUT": 4,
}


def is_wrong(url, story):
    """Return whether a page must not be on the wire."""
    return story in {"hang", "failing"} or ("/private" in url and story != "missing")


@pytest.mark.first
def test_killed_while_origins_wait_and_are_deferred_none_is_lost(tmp_path):
    accounts = tmp_path / "accounts"
    accounts.touch()
    order = {"accounts": str(accounts)}
    settings = {**SETTINGS, "JOBDIR": str(tmp_path / "job")}
    # It can't end before it is killed: what hangs and what fails is waited for.
    first = {**settings, "REP_DEFER_TIMEOUT": 3600}
    stories = [STORIES[number % len(STORIES)] for number in range(ORIGINS)]
    with web_of(stories, 0.001) as web:
        urls = urls_of(web, range(ORIGINS), ["/p/1", "/private/2"])
        process = start(urls, first, **order)
        wait_until(lambda: process.has_ended or len(accounts.read_text().splitlines()) >= AFTER)
        assert not process.has_ended
        process.kill()
        before = Counter(line.split("\t")[0] for line in accounts.read_text().splitlines())
        result = crawl(urls, settings, **order)
        journal = web.journal()
    outcomes = Counter(line.split("\t")[0] for line in accounts.read_text().splitlines())
    expected = dict(zip(urls, 2 * stories, strict=True))
    lost = [(story, url) for url, story in expected.items() if url not in outcomes]
    assert {*outcomes} <= {*expected}
    assert lost == []
    # Once from the queue; and again from the spider, where the duplicates filter forgot it.
    assert max((outcomes - before).values()) <= 2
    assert len(before) < 2 * ORIGINS, "killed too late to show anything"
    pages = {f"http://{site}:{web.port}{e['path']}" for site in journal for e in journal[site]}
    wrong = [url for url in pages & expected.keys() if is_wrong(url, expected[url])]
    assert wrong == []
    assert result["stats"]["finish_reason"] == "finished"
