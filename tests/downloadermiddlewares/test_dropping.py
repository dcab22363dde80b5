"""What a dropped request leaves: the exception, its verdict, the log line."""

import json
import logging
import pickle

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.settings import default_settings

from scrapy_rep import RobotsTxtDisallowed
from scrapy_rep.protocol.verdict import Outage, Reason, Verdict
from scrapy_rep.utils.text import utc_time_text
from tests.crawling.crawl import AS_BY_DEFAULT, crawl
from tests.crawling.web import answer, redirect, robots


async def test_builtin_the_errback_gets_an_ignore_request(web):
    site = web.site(robots("# hello\nUser-agent: *\nDisallow: /pri*te$\n"))
    error = (await crawl(site.url("/private"))).failures[0].value
    assert isinstance(error, IgnoreRequest)
    assert isinstance(error, RobotsTxtDisallowed)
    assert error.reason is error.verdict.reason is Reason.RULE
    assert str(error.verdict.rule) == "Disallow: /pri*te$"
    assert error.verdict.line == 3
    assert error.verdict.robotstxt_url == site.url("/robots.txt")
    assert str(error) == (
        f"Forbidden by robots.txt: Disallow: /pri*te$ (line 3 of {site.url('/robots.txt')})"
    )


@pytest.mark.parametrize(
    ("answer", "cause"), [(answer(503), "status 503"), ([["close"]], "connection closed")]
)
async def test_the_errback_is_told_why_nobody_knows_the_rules_and_when_they_are_asked_for(
    answer, cause, web
):
    site = web.site(answer)
    result = await crawl(site.url("/"), site.url("/2"))
    error, meta = result.failures[0].value, result.failures[0].request.meta["robotstxt"]
    outage = error.verdict.outage
    assert outage.cause == cause
    assert outage.since < outage.next_try
    assert meta["cause"] == cause
    assert (meta["unreachable_since"], meta["next_try"]) == (outage.since, outage.next_try)
    where = site.url("/robots.txt")
    at = f"robots.txt is unreachable: {cause}, next try at {utc_time_text(outage.next_try)} ({where})"
    assert str(error) == f"Dropped: {at}"
    assert any(text.endswith(f": {at}") for text in result.messages())
    (warning,) = result.messages(logging.WARNING)
    begin = f"robots.txt of {site.url('')} is unreachable: {cause}; its pages are disallowed, next try in "
    assert warning.startswith(begin)
    assert result.stats[f"robotstxt/unreachable_count/{cause}"] == 1
    assert "robotstxt/deferred_dropped" not in result.stats


def test_the_exception_can_be_pickled():
    outage = Outage("status 503", 1.0, 6.0)
    error = RobotsTxtDisallowed(
        Verdict(False, Reason.UNREACHABLE, None, "http://a/robots.txt", outage)
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.verdict, str(again)) == (error.verdict, str(error))


def told(result, begin):
    """Return the lines of the log at INFO that begin in some way."""
    return [
        record.getMessage()
        for record in result.records
        if record.levelno == logging.INFO and record.getMessage().startswith(begin)
    ]


async def test_what_no_rule_forbids_is_not_called_forbidden_by_robotstxt(web):
    site, ours = web.site(answer(503)), web.site(host="localhost")
    override = {"host": "localhost", "policy": "disallow", "reason": "made up"}
    urls = [site.url("/"), ours.url("/"), "http://:80/"]
    result = await crawl(*urls, settings={"REP_OVERRIDES": [override]})
    assert len(result.dropped) == 3
    errors = [str(failure.value) for failure in result.failures]
    assert [text for text in result.messages() + errors if "Forbidden" in text] == []
    lines = [line for line in told(result, "Dropped: ") if "next try" not in line]
    assert sorted(lines) == [
        "Dropped: <GET http://:80/>: no-origin",
        f"Dropped: <GET {ours.url('/')}>: override",
    ]


async def test_the_first_drops_are_told_at_info_up_to_a_bound_and_most_at_the_end(web):
    paths = [f"/{chr(ord('a') + n)}" for n in range(12)]
    site = web.site(robots("User-agent: *\n" + "".join(f"Disallow: {p}\n" for p in paths)))
    result = await crawl(*(site.url(path) for path in [*paths, "/c/1", "/c/2"]))
    lines = told(result, "Forbidden by robots.txt: ")
    assert len(lines) == 10
    assert lines[-1].endswith(" - further lines of this kind are logged at DEBUG level")
    (summary,) = told(result, "Requests dropped because of robots.txt: ")
    first, *rows = summary.splitlines()
    where = site.url("/robots.txt")
    assert first == "Requests dropped because of robots.txt: 14"
    assert rows[0] == f"       3  Disallow: /c (line 4 of {where})"
    assert rows[1] == f"       1  Disallow: /a (line 2 of {where})"
    assert rows[10:] == ["       2  others"]


async def test_rules_and_origins_beyond_a_bound_are_counted_together(web, monkeypatch):
    monkeypatch.setattr("scrapy_rep.drops._MAX_KEYS", 1)
    site = web.site(robots("User-agent: *\nDisallow: /a\nDisallow: /b\n"))
    result = await crawl(site.url("/a"), site.url("/b"))
    (summary,) = told(result, "Requests dropped because of robots.txt: 2\n")
    assert summary.splitlines()[2:] == ["       1  others"]


async def test_one_info_line_at_the_start(web):
    settings = {**AS_BY_DEFAULT, "REP_TIMEOUT": 60, "REP_CACHE_TTL": 60}
    (line,) = (await crawl(web.site(robots("")).url("/"), settings=settings)).messages(logging.INFO)
    assert line == (
        "Obeying robots.txt as 'testbot', records in memory://, REP_CACHE_TTL=60.0, REP_TIMEOUT=60.0, "
        "REP_DEFER_TIMEOUT=0.0"
    )


@pytest.mark.parametrize(
    ("settings", "warning"),
    [
        ({"ROBOTSTXT_USER_AGENT": "bot.2000"}, "RFC 9309 §2.2.1"),
        ({"USER_AGENT": "jävla-fanbot/1.0"}, r"'j\xe4vla-fanbot' is not a valid product token"),
        ({"USER_AGENT": "Mozilla/5.0 (X11; Linux) Firefox/130.0"}, "contains no product token"),
        ({"REP_USAGE_ACTION": "drop"}, "REP_USAGE_ACTION is 'drop', but no purposes are declared"),
        ({"REP_FOO": 5}, "REP_FOO is not a setting of this version of scrapy-rep$"),
    ],
)
async def test_a_warning_at_the_start(web, settings, warning):
    result = await crawl(web.site(robots("")).url("/"), settings=settings)
    (line,) = result.messages(logging.WARNING)
    assert warning in f"{line}$"


@pytest.mark.parametrize(
    ("settings", "hints"),
    [
        ({"USER_AGENT": default_settings.USER_AGENT}, 1),
        ({"USER_AGENT": "Scrapy/1.0 mybot"}, 0),
        ({"USER_AGENT": default_settings.USER_AGENT, "ROBOTSTXT_USER_AGENT": "Scrapy"}, 0),
    ],
)
async def test_a_hint_for_who_has_not_named_the_crawler(web, settings, hints):
    result = await crawl(web.site(robots("")).url("/"), settings=settings)
    line = (
        "The product token is 'Scrapy', the name in Scrapy's default User-Agent. To name your "
        "crawler, set USER_AGENT, for example to 'mybot/1.0 (+https://mybot.example)'"
    )
    assert told(result, "The product token is") == [line] * hints


async def test_no_byte_of_a_site_stands_unescaped_in_a_log_line(web):
    evil = "\x1b[31mred\x07\x00\r\n"
    sites = [
        web.site(robots("User-agent: *\nDisallow: /a\x1b[31m\x07\xff\nDisallow: /a")),
        web.site(answer(302, "", headers={"Location": "http://127.0.0.1/\x1b[31m\x07"})),
        web.site([["send", evil * 3], ["close"]]),
        web.site(answer(200, "x", headers={"Content-Encoding": "\x1b[31m"})),
        web.site(answer(200, "x", reason="\x1b[31m", headers={"Cache-Control": "\x1b[31m"})),
    ]
    result = await crawl(*(site.url("/a\x1b[31m") for site in sites))
    texts = result.messages() + [str(failure.value) for failure in result.failures]
    assert len(result.failures) >= 3
    lines = [line for text in texts for line in text.split("\n       ")]  # of the summary
    assert [line for line in lines if not line.isprintable()] == []


@pytest.mark.parametrize("settings", [{}, {"REP_DRY_RUN": True}])
async def test_a_long_rule_is_cut_in_log_lines_messages_and_the_report(web, tmp_path, settings):
    path = tmp_path / "report.json"
    site = web.site(
        robots(f"User-agent: *\nDisallow: /*{'x' * 16_000}\nDisallow: /*{'*' * 16_000}")
    )
    result = await crawl(site.url("/a"), settings={"REP_REPORT": path, **settings})
    texts = [text for text in result.messages() if "Disallow: " in text]
    assert texts
    texts += [str(failure.value) for failure in result.failures]
    assert [text for text in texts if len(text) > 400 or "*… (line 3 of" not in text] == []
    assert [drop["rule"][-1:] for drop in json.loads(path.read_text())["drops"]] == ["…"]
    assert path.stat().st_size < 40_000  # with the text itself


async def test_a_crawl_whose_start_requests_are_all_disallowed_says_so(web, monkeypatch):
    site, other = web.site(robots("User-agent: *\nDisallow: /\n")), web.site()
    site_rule = f"Disallow: / (line 2 of {site.url('/robots.txt')})"
    later = [["wait", 0.2], *robots("User-agent: *\nDisallow: /no")]
    other.change(later, paths={"/to": [redirect(site.url("/led"))]})
    closed = [site.url("/a"), site.url("/b"), other.url("/to"), other.url("/no")]
    closed = [Request(url, meta={"handle_httpstatus_all": False}) for url in closed]
    result = await crawl(*closed, settings=AS_BY_DEFAULT)
    (warning,) = result.messages(logging.WARNING)
    assert warning.splitlines() == [
        "No page was fetched, because robots.txt disallows the start requests: 4. For the rules "
        f"run: scrapy robots explain {site.url('/a')!r}",
        f"       3  {site_rule}",
        f"       1  Disallow: /no (line 2 of {other.url('/robots.txt')})",
    ]
    assert result.stats["robotstxt/forbidden_start_count"] == 4
    with monkeypatch.context() as patch:
        patch.setenv("SCRAPY_SETTINGS_MODULE", "tests")  # in a project
        result = await crawl(*closed, settings=AS_BY_DEFAULT)
        (warning,) = result.messages(logging.WARNING)
        assert warning.splitlines()[0].endswith(f"{site.url('/a')!r} --spider list")
    for more, settings in ([other.url("/")], {}), ([], {"REP_DRY_RUN": True}):
        result = await crawl(*closed, *more, settings={**AS_BY_DEFAULT, **settings})
        assert not [text for text in result.messages() if text.startswith("No page")]
        assert "robotstxt/forbidden_start_count" not in result.stats


async def test_exempt_requests_are_counted_and_their_responses_say_so(web):
    site = web.site(robots("User-agent: *\nDisallow: /"), paths={"/from": [redirect("/to")]})
    meta = {"dont_obey_robotstxt": True, "handle_httpstatus_all": False}
    result = await crawl(Request(site.url("/from"), meta=meta))
    assert result.fetched == [site.url("/to")]
    assert result.responses[0].meta["robotstxt"] == {"exempt": True}
    assert result.stats["robotstxt/exempt"] == 2
    line = "Requests sent regardless of robots.txt (dont_obey_robotstxt): 2"
    assert line in told(result, "Requests")
    # Nor is one of robots.txt itself counted.
    assert "robotstxt/exempt" not in (await crawl(site.url("/"))).stats
