"""REP_OVERRIDES in crawls."""

import logging
from collections import Counter
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from scrapy_rep import Robots, SettingsError
from scrapy_rep.overrides import POLICIES, Overrides, overrides_reader
from scrapy_rep.settings import Options
from tests.crawling.crawl import SCRAPYS_QUEUE, OfCrawler, crawl, releasing_when, stat
from tests.crawling.web import answer, held, redirect, robots
from tests.extensions.evidence import lines
from tests.scheduler.test_broad import DEFER
from tests.test_signals import Ear
from tests.waiting import until

RULES = "User-agent: *\nDisallow: /private\n\nUser-agent: partner\nDisallow: /partner\n"
WHY = "we agreed on it, ticket 5"


def override(policy, host="127.0.0.1", **more):
    return {"host": host, "policy": policy, "reason": WHY, **more}


def overridden(*entries):
    return {"REP_OVERRIDES": list(entries)}


async def test_each_policy_decides_for_its_host(web, tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("User-agent: *\nDisallow: /other\n")
    hosts = {policy: f"127.0.0.{n}" for n, policy in enumerate(POLICIES, 2)}
    sites = {policy: web.site(robots(RULES), host=host) for policy, host in hosts.items()}
    more = {"file": {"path": str(path)}, "agent": {"agent": ["partner"]}}
    entries = [override(policy, host, **more.get(policy, {})) for policy, host in hosts.items()]
    ear = Ear("robotstxt_verdict")
    known = []

    def opened(crawler):
        ear.listen(crawler)
        known.append(Robots.of(crawler).known_verdict(sites["file"].url("/other")))

    urls = [s.url(path) for s in sites.values() for path in ("/private", "/partner", "/other")]
    urls.append(sites["disallow"].url("/robots.txt"))
    result = await crawl(*urls, settings=overridden(*entries), opened=opened)
    assert {policy: sorted(site.targets) for policy, site in sites.items()} == {
        "ignore": ["/other", "/partner", "/private"],
        "disallow": [],
        "file": ["/partner", "/private"],
        "agent": ["/other", "/private"],
    }
    asked = {policy: len(site.robots_requests) for policy, site in sites.items()}
    assert asked == {"ignore": 0, "disallow": 1, "file": 0, "agent": 1}  # the first, by the crawl
    assert result.dropped == {
        **{sites["disallow"].url(path): "override" for path in ("/private", "/partner", "/other")},
        sites["file"].url("/other"): "rule",
        sites["agent"].url("/partner"): "rule",
    }
    counts = {policy: result.stats[f"robotstxt/override_count/{policy}"] for policy in POLICIES}
    heard = Counter(what["decision"].override.policy for _, what in ear.heard)
    assert counts == heard == {"ignore": 3, "disallow": 4, "file": 3, "agent": 3}
    lines = [text for text in result.messages(logging.INFO) if "Override" in text]
    assert f"Override in use: 'ignore for {hosts['ignore']} ({WHY})'" in lines
    ignored = [r for r in result.responses if r.url.startswith(sites["ignore"].url(""))]
    assert {r.meta["robotstxt"]["reason"] for r in ignored} == {"override"}
    (verdict,) = [f.value.verdict for f in result.failures if f.request.url == urls[8]]
    assert (str(verdict.rule), verdict.line) == ("Disallow: /other", 2)
    assert verdict.robotstxt_url == path.as_uri()
    assert known == [verdict]


@pytest.mark.parametrize("path", ["/robots.txt", "/rules"])
async def test_disallow_ends_the_redirects_of_other_sites_which_stay_closed(web, tmp_path, path):
    closed = web.site(robots(RULES), paths={"/rules": [robots(RULES)]})
    site = web.site(redirect(f"http://localhost:{closed.port}{path}"))
    store = {"REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite"}
    settings = {**store, **overridden(override("disallow", "localhost"))}
    result = await crawl(site.url("/public"), site.url("/private"), settings=settings)
    assert closed.journal == []
    assert set(result.dropped.values()) == {"unreachable"}
    (warning,) = [text for text in result.messages(logging.WARNING) if "REP_OVERRIDES" in text]
    assert f"(http://localhost:{closed.port}{path})" in warning
    # It says nothing of the site: nothing of it is stored.
    result = await crawl(site.url("/public"), site.url("/private"), settings=store)
    assert result.dropped == {site.url("/private"): "rule"}


@pytest.mark.parametrize("host", ["site.test", ".site.test", "site.test.", ".test"])
@pytest.mark.parametrize("policy", ["disallow", "ignore"])
def test_a_host_is_meant_with_and_without_its_final_dot(policy, host):
    overrides = Overrides(overrides_reader.read([override(policy, host)]), lambda: 0.0)
    assert {overrides.of_host(asked).policy for asked in ("site.test", "site.test.")} == {policy}


async def test_an_expired_override_is_a_warning_and_none(web):
    site = web.site(robots(RULES))
    settings = overridden(override("ignore", until="2020-01-31"))
    result = await crawl(site.url("/private"), settings=settings)
    assert result.dropped == {site.url("/private"): "rule"}
    warning, _ = result.messages(logging.WARNING)  # and that all was disallowed
    assert warning.startswith("Override expired at 2020-02-01 00:00:00+00:00, robots.txt is obeyed")
    assert WHY in warning


async def test_what_left_before_its_override_expired_is_not_sent_afterwards(web):
    site = web.site(robots(RULES))
    end = datetime.now(timezone.utc) + timedelta(seconds=3)

    class Late(OfCrawler):
        async def process_request(self, request):
            if request.url == site.url("/private"):
                await until(lambda: datetime.now(timezone.utc) > end)

    entries = overridden(override("ignore", until=end.isoformat()))
    settings = {**entries, "DOWNLOADER_MIDDLEWARES": {Late: 543}}
    result = await crawl(site.url("/private"), settings=settings)
    assert "robotstxt/override_count/ignore" in result.stats
    assert result.dropped == {site.url("/private"): "rule"}
    assert site.targets == []


@pytest.mark.parametrize(
    ("host", "decides"),
    [
        ("example.com", ".example.com"),
        ("a.b.example.com", ".example.com"),
        ("news.example.com", ".news.example.com"),
        ("a.news.example.com", "a.news.example.com"),
        ("b.news.example.com", ".news.example.com"),
        ("badexample.com", None),
        ("com", None),
        ("127.0.0.1", None),
        ("::1", "::1"),
        ("xn--exmple-cua.com", "xn--exmple-cua.com"),
    ],
)
def test_the_most_specific_host_decides(host, decides):
    hosts = [".example.com", ".news.example.com", "A.news.Example.com", "::1", "exämple.com"]
    entries = overrides_reader.read([override("ignore", host) for host in hosts])
    entry = Overrides(entries, lambda: 0.0).of_host(host)
    assert (entry.host if entry else None) == decides


@pytest.mark.parametrize(
    ("values", "until"),
    [
        (["2026-12-31", "2027-01-01T00:00", "2027-01-01 00:00:00Z", "2027-01-01T01:00+01:00",
          date(2026, 12, 31), datetime(2027, 1, 1), datetime(2027, 1, 1, tzinfo=timezone.utc),  # noqa: DTZ001 - a moment without a zone
          datetime(2027, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))], "2027-01-01"),
        # The last day of the calendar.
        (["9999-12-31", date.max, "9999-12-30"], "9999-12-31"),
    ],
)  # fmt: skip
def test_until_takes_dates_with_their_day_and_moments(values, until):
    for value in values:
        (entry,) = overrides_reader.read([override("ignore", until=value)])
        assert entry.until_text == f"{until} 00:00:00+00:00"


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (["a"], "must be a dict"),
        ([{"host": "a", "policy": "ignore"}], "'reason' is required"),
        ([override("ignore", reason=" ")], "'reason' is required"),
        ([override("allow")], "'policy' must be one of ignore, disallow, file, agent"),
        ([override("ignore", until="soon")], "'until' must be a date"),
        ([override("ignore", until=5)], "'until' must be a date"),
        # Years in UTC that no datetime has.
        ([override("ignore", until="9999-12-31T23:59:59-01:00")], "'until' must be a date"),
        ([override("ignore", until="0001-01-01T00:00+14:00")], "'until' must be a date"),
        ([override("ignore", until="9999-12-31T23:59:59.999999")], "'until' must be a date"),
        ([override("ignore", path="x")], "unknown keys: path"),
        ([override("ignore", untill="2026-01-01")], "unknown keys: untill"),
        ([override("file")], "'path' must name the file"),
        ([override("file", path="\0")], "'path' must name the file"),
        ([override("agent", agent="*")], "'agent' must be a product token"),
        ([override("agent", agent=5)], "'agent' must be a product token"),
        ([override("ignore", "http://a.example/")], "'host' must be a host name"),
        ([override("ignore", "a.example:8080")], "'host' must be a host name"),
        ([override("ignore", "")], "'host' must be a host name"),
        ([override("ignore", ".")], "'host' must be a host name"),
        ([override("ignore", "*.example.com")], "'host' takes no '*': '.example.com' is that"),
        ([override("ignore", None)], "'host' must be a host name"),
        ([override("ignore"), override("disallow")], "one for this host already"),
    ],
)
def test_a_wrong_override_is_refused_with_its_entry(entries, says):
    with pytest.raises(SettingsError, match="REP_OVERRIDES") as caught:
        Options.from_settings({"REP_OVERRIDES": entries})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


TAKES = "it must be a list of dicts, each with a host, a policy and a reason, or the same as JSON"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("overrides.json", "; Expecting value"),
        (Path("overrides.json"), ""),
        ("[{'host': 'a.example'}]", "; Expecting property name"),
        ('{"host": "a.example"}', ""),
        ("[" * 3_000, ""),
        (5, ""),
        ({"host": "a.example"}, ""),
    ],
)
def test_what_is_no_list_is_refused_with_what_it_takes(value, hint):
    with pytest.raises(SettingsError) as caught:
        Options.from_settings({"REP_OVERRIDES": value})
    said, takes, rest = str(caught.value).partition(TAKES)
    assert (said, takes) == (f"REP_OVERRIDES is {value!r}: ", TAKES)
    assert rest.startswith(hint) if hint else rest == ""


async def test_a_file_that_is_not_there_stops_the_crawl(web, tmp_path):
    site = web.site(robots(RULES))
    settings = overridden(override("file", path=str(tmp_path / "none.txt")))
    with pytest.raises(SettingsError, match="REP_OVERRIDES names a file that can't be read"):
        await crawl(site.url("/"), settings=settings)
    assert site.journal == []


@pytest.mark.parametrize("in_project", [True, False])
async def test_a_relative_path_is_one_in_the_projects_directory(
    web, tmp_path, monkeypatch, in_project
):
    below = tmp_path / "spiders"
    below.mkdir()
    here, elsewhere = (tmp_path, below) if in_project else (below, tmp_path)
    if in_project:
        (tmp_path / "scrapy.cfg").touch()
    (here / "rules.txt").write_text("User-agent: *\nDisallow: /a\n")
    (elsewhere / "rules.txt").write_text("User-agent: *\nDisallow: /b\n")
    monkeypatch.chdir(below)
    site = web.site(robots(RULES))
    evidence = tmp_path / "evidence.jsonl"
    settings = overridden(override("file", path="rules.txt"))
    settings["REP_EVIDENCE"] = str(evidence)
    result = await crawl(site.url("/a"), site.url("/b"), settings=settings)
    assert result.dropped == {site.url("/a"): "rule"}
    uri = (here / "rules.txt").as_uri()
    assert {failure.value.verdict.robotstxt_url for failure in result.failures} == {uri}
    assert {line["robotstxt_url"] for line in lines(evidence)} == {uri}


@pytest.mark.parametrize("queue", [{}, SCRAPYS_QUEUE], ids=["ours", "scrapys"])
async def test_another_agent_waits_as_all_do_and_each_request_is_told_of_once(web, queue):
    site = web.site(held(answer(503)), robots(RULES))
    ear = Ear("robotstxt_verdict")
    paths = ["/1", "/private", "/partner"] + [f"/more/{number}" for number in range(9)]

    def all_wait(crawler):
        return stat(crawler, "scheduler/enqueued") >= len(paths)

    settings = {
        **DEFER,
        **queue,
        **overridden(override("agent", agent="partner")),
        "CONCURRENT_REQUESTS": 4,
    }
    urls = map(site.url, paths)
    at_last = releasing_when(all_wait, site)
    result = await crawl(*urls, meanwhile=at_last, settings=settings, opened=ear.listen)
    told = [what["request"].url for _, what in ear.heard if what["decision"].override]
    assert sorted(told) == sorted(site.url(path) for path in paths)
    assert result.stats["robotstxt/override_count/agent"] == len(paths)
    if queue:
        # Only our queue can defer.
        assert set(result.dropped.values()) <= {"unreachable", "rule"}
        assert "/partner" not in site.targets
        return
    assert sorted(site.targets) == sorted(set(paths) - {"/partner"})
    assert result.dropped == {site.url("/partner"): "rule"}
    assert len(site.robots_requests) == 2
    # Its rules were looked for by the name that the override gives.
    assert "robotstxt/waited" not in result.stats
