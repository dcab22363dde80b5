"""The report's page in a real browser."""

import pytest
from scrapy import Request

from scrapy_rep.extensions.report_counts import Counts
from scrapy_rep.extensions.report_page import render
from scrapy_rep.protocol.access_policy import Policy
from scrapy_rep.protocol.verdict import Reason, Rule, Verdict
from tests.extensions.report.browser import Page, find_browser
from tests.extensions.report.reports import report_of

EVIL = "</script><script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
UNREACHABLE = Verdict(allowed=False, reason=Reason.UNREACHABLE)


def many(origins):
    """What a crawl of so many origins comes to, hostile ones among them."""
    counts = Counts(Policy())
    for number in range(origins):
        origin = f"https://site-{number}.example"
        row = counts.row(origin)
        row.outcome = ("available", "available", "unavailable", "unreachable")[number % 4]
        row.status = (200, 200, 404, 503)[number % 4]
        row.size, row.fetches, row.asked = number * 10, 1, f"2026-11-{number % 30:02}T08:10:27.182Z"
        if row.outcome == "unreachable":
            row.unreachable_since = row.asked
            row.unreachable_cause = row.error = f"ConnectionLost {EVIL}"
        for page in range(number % 7):
            verdict = UNREACHABLE._replace(robotstxt_url=f"{origin}/robots.txt")
            counts.count_forbidden(Request(f"{origin}/page-{page}"), verdict, dropped=True)
    origin = "https://site-0.example"
    row = counts.row(origin)
    row.sha256 = counts.add_text(f"User-agent: *\nDisallow: /{EVIL}\u202e\x1b[31m\n".encode())
    rule = Rule(False, "/", f"/{EVIL}", 2)
    verdict = Verdict(False, Reason.RULE, rule, f"{origin}/{EVIL}\u202e\x1b[31m")
    counts.count_forbidden(Request(f"{origin}/{EVIL}"), verdict, dropped=True)
    counts.row(f"https://{EVIL}")
    return counts


@pytest.fixture
def page():
    pytest.importorskip("playwright")
    page = Page(find_browser())
    yield page
    page.close()


def column(page, number, table="table"):
    return page.run(
        f"Array.from(document.querySelectorAll('#{table} tbody tr')).filter(r => !r.hidden)"
        f".map(r => r.cells[{number}].textContent)"
    )


def written(tmp_path, counts, **crawl):
    path = tmp_path / "report.html"
    path.write_text(render(report_of(counts, **crawl)))
    return path


def test_the_page_sorts_and_searches_in_a_browser(tmp_path, page):
    page.open(written(tmp_path, many(40)))
    assert len(column(page, 0)) == 41
    assert column(page, 1)[0] == "unreachable"
    # By keyboard: to the heading, and press it.
    page.run("document.querySelectorAll('#table button')[2].focus()")
    for descending in (True, False):
        page.press("Enter")
        dropped = [int(text) for text in column(page, 2)]
        assert dropped == sorted(dropped, reverse=descending)
        sort = page.run("document.querySelectorAll('#table th')[2].getAttribute('aria-sort')")
        assert sort == ("descending" if descending else "ascending")
    page.run("document.querySelectorAll('#table button')[0].click()")
    names = [name for name in column(page, 0) if "site-" in name]
    assert names == [f"https://site-{number}.example" for number in range(40)]
    page.run("document.getElementById('search').focus()")
    page.insert("UNREACHABLE site-1")
    assert column(page, 0) == [f"https://site-{n}.example" for n in (11, 15, 19)]
    assert page.run("document.getElementById('shown').textContent") == "3 of 41"
    assert page.problems == []


def test_a_dropped_page_is_found_by_its_url(tmp_path, page):
    page.open(written(tmp_path, many(40)))
    assert "https://site-13.example/page-5" not in page.run("document.body.innerText")  # folded up
    page.run("document.querySelector('[data-table=dropped]').focus()")
    page.insert("site-13.example/page-5")
    assert len(column(page, 0, "dropped")) == 1
    assert "https://site-13.example/page-5" in page.run("document.body.innerText")
    assert page.problems == []


def test_the_text_of_a_robotstxt_is_one_click_away(tmp_path, page):
    page.open(written(tmp_path, many(8)))
    is_open = "document.querySelectorAll('.text:popover-open').length"
    assert page.run(is_open) == 0
    page.run("document.querySelector('#dropped .hash').focus()")
    page.press("Enter")
    assert page.run(is_open) == 1
    text = page.run("document.querySelector('.text:popover-open pre').innerText")
    assert text.startswith(f"   1  User-agent: *\n   2  Disallow: /{EVIL}\\u202e\\x1b[31m")
    page.press("Escape")
    assert page.run(is_open) == 0
    assert page.problems == []


def test_on_paper_all_is_open(tmp_path, page):
    page.open(written(tmp_path, many(8)))
    closed = "document.querySelectorAll('details:not([open])').length"
    before = page.run(closed)
    assert before > 0
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run(closed) == 0
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.run(closed) == before


def test_hostile_text_does_nothing_in_a_browser(tmp_path, page):
    counts = many(8)
    counts.exempt.update(requests=1, urls=[EVIL])
    delay = {"asked": 1.0, "taken": None, "field": EVIL, "line": 1}
    counts.row("http://b.example").crawl_delay = delay
    counts.usage_statements[EVIL, EVIL, "unknown"] = 1
    made = {"versions": {"Scrapy": EVIL}, "settings": {"REP_OVERRIDES": [{"reason": EVIL}]}}
    crawl = {"spider": EVIL, "tokens": [EVIL], "finish_reason": EVIL, "purposes": ["search"]}
    page.open(written(tmp_path, counts, made=made, **crawl))
    assert "owned" not in page.run("document.title").replace(EVIL, "")
    assert page.run("document.images.length") == 0
    assert page.run("document.scripts.length") == 1
    assert page.run("document.links.length") == 0
    assert EVIL in page.run("document.body.innerText")
    assert "\\u202e\\x1b[31m" in page.run("document.body.innerText")
    # Even if something came in: only our own script runs.
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.x=1\">')")
    assert page.run("window.x === undefined") is True


def test_ten_thousand_origins_are_readable(tmp_path, page):
    path = written(tmp_path, many(10_000))
    assert path.stat().st_size < 1_000_000
    page.open(path)
    assert len(column(page, 0)) == 1000
    assert "And 9,001 more." in page.run("document.body.innerText")
    # The page itself never scrolls sideways; wide tables do, in their own frames.
    for width in (1280, 360):
        page.resize(width, 800)
        assert page.run("document.documentElement.scrollWidth") <= width
    assert page.problems == []
