"""``scrapy robots``, run as people run it."""

import json
import re

import pytest

from scrapy_rep.stores.base import PAUSE, Claim, key_of_host
from scrapy_rep.stores.uri import make_store
from tests.commands.started import started
from tests.crawling.web import answer, held, redirect, robots
from tests.waiting import PATIENCE

RULES = (
    "User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: mybot\nDisallow: /\n"
    "Crawl-delay: 5\n"
)
FILE = "\ufeffUser-agent: *\nDissallow: /a\nDisallow: private\nFoo: bar\n"


@pytest.fixture(scope="module")
def site(web):
    return web.site(robots(RULES))


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "robots.txt").write_text(RULES)


@pytest.mark.real_process
def test_check_says_what_a_crawl_does(site, robots_command, tmp_path):
    run = robots_command("check", site.url("/private"), site.url("/"), site.url("/private/open"))
    where = site.url("/robots.txt")
    assert run.lines == [
        f"disallowed  {site.url('/private')}  Disallow: /private (line 2 of {where}), as Scrapy, fetched just now",
        f"allowed     {site.url('/')}  no-rule ({where}), as Scrapy, fetched just now",
        f"allowed     {site.url('/private/open')}  Allow: /private/open (line 3 of {where}), as Scrapy, fetched just now",
    ]
    assert (run.status, run.err) == (1, "")
    assert site.targets == []
    # Outside a project nothing is left behind.
    assert list(tmp_path.iterdir()) == []


def test_check_and_explain_ask_by_another_name(site, robots_command):
    run = robots_command("check", "--agent", "mybot/1.0", "--json", site.url("/"))
    assert run.status == 1
    assert run.json == {
        "url": site.url("/"),
        "allowed": False,
        "reason": "rule",
        "rule": "Disallow: /",
        "line": 6,
        "robotstxt_url": site.url("/robots.txt"),
        **dict.fromkeys(("cause", "unreachable_since", "next_try")),
        "tokens": ["mybot"],
        "from_store": False,
    }
    run = robots_command("explain", "--json", "--agent", "mybot", site.url("/a"))
    assert run.status == 1
    assert run.json["group"] == {"token": "mybot", "lines": [5]}
    assert run.json["matching"] == [{"rule": "Disallow: /", "length": 1, "line": 6}]
    assert run.json["robotstxt"]["from_store"] is False


def test_check_tells_allowed_from_unknown(web, robots_command):
    missing, failing = web.site(answer(404)), web.site(answer(503))
    assert robots_command("check", missing.url("/")).status == 0
    run = robots_command("check", missing.url("/"), failing.url("/"), "mailto:a@b")
    assert run.status == 2
    told = sorted(line.split("  ")[0] for line in run.lines)
    assert told == ["allowed", "can't tell", "can't tell"]


@pytest.mark.real_process
def test_answers_come_as_they_are_found(web, tmp_path):
    slow, quick = web.site(held(robots(""))), web.site(robots(""))
    with started("check", slow.url("/"), quick.url("/"), cwd=tmp_path) as process:
        first = process.stdout.readline()
        slow.release()
        rest = process.stdout.read()
    assert first.startswith(f"allowed     {quick.url('/')}  ")
    assert rest.startswith(f"allowed     {slow.url('/')}  ")


@pytest.mark.spec("F-13", "T-2")
def test_explain_takes_the_lines_of_a_file_that_a_crawl_reads(robots_command, tmp_path):
    (tmp_path / "robots.txt").write_bytes(RULES.encode() + b"\n" * 512_000 + b"Allow: /private/a\n")
    explain = ["explain", "--file", "robots.txt", "http://a.example/private/a"]
    run = robots_command(*explain)
    assert (run.status, run.err) == (1, "")
    assert run.lines[:2] == [
        "disallowed: http://a.example/private/a",
        "  Disallow: /private (line 2 of robots.txt)",
    ]
    assert "  -> line 2     length 8    Disallow: /private" in run.lines
    assert [rule["line"] for rule in robots_command(*explain, "--json").json["matching"]] == [2]
    run = robots_command(*explain[:3], "http://a.example/robots.txt")
    assert run.lines[-1] == "  none: robots.txt itself is always allowed"


def test_check_takes_a_list_as_editors_and_other_programs_write_it(robots_command, rules, tmp_path):
    lines = b"\xef\xbb\xbfhttp://a.example/private\r\n\r\n  \t\nhttp://b.example/\xff\x0c\xe2\x80\xa8x\n"
    (tmp_path / "urls").write_bytes(lines + b"c.example\nhttp://\x1b[31m\n" + b"x" * 512_000)
    run = robots_command("check", "--file", "robots.txt", "--urls-from", "urls")
    assert run.lines[:2] == [
        "disallowed  http://a.example/private  Disallow: /private (line 2 of robots.txt), as Scrapy",
        "allowed     http://b.example/\\udcff\\x0c\\u2028x  no-rule (robots.txt), as Scrapy",
    ]
    assert run.lines[2].endswith("c.example  not an absolute http, https or ftp URL")
    assert run.lines[3].startswith("can't tell  http://\\x1b[31m  ")
    assert [len(run.lines), run.status] == [5, 2]
    assert all(line.isprintable() for line in run.lines)
    (tmp_path / "bad").write_text("c.example\nhttp://\x1b[31m\n")
    assert robots_command("check", "--urls-from", "bad").lines == run.lines[2:4]


def test_explain_tells_group_rules_and_fetch(web, robots_command):
    site = web.site(redirect("/r"), paths={"/r": [robots(RULES)]})
    run = robots_command("explain", "--agent", "otherbot", site.url("/private/open"))
    assert run.status == 0
    lines = [line.strip() for line in run.lines]
    assert lines[0] == f"allowed: {site.url('/private/open')}"
    assert set(lines) >= {
        f"{site.url('/robots.txt')}: available (status 200)",
        f"redirected to {site.url('/r')}",
        "'*', User-agent in line 1, 2 rules",
        "no group: otherbot",
    }
    assert lines[-2:] == [
        "-> line 3     length 13   Allow: /private/open",
        "line 2     length 8    Disallow: /private",
    ]


def test_explain_tells_until_when_nobody_knows(web, robots_command):
    site = web.site(answer(503))
    run = robots_command("explain", site.url("/"))
    assert run.status == 2
    assert run.out.startswith("can't tell: ")
    assert "unreachable (status 503)" in run.out
    assert "next try not before" in run.out
    assert "tried at " in run.out
    robotstxt = robots_command("explain", "--json", site.url("/")).json["robotstxt"]
    assert (robotstxt["outcome"], robotstxt["status"]) == ("unreachable", 503)
    assert robotstxt["next_try"] > robotstxt["unreachable_since"] == robotstxt["at"]
    assert ", tried just now\n" in robots_command("check", site.url("/")).out


def test_explain_tells_until_when_a_site_is_left_alone(site, robots_command, tmp_path):
    uri = f"sqlite:///{tmp_path / 'robots.sqlite'}"
    store = make_store(uri, 0)

    store.write([Claim(key_of_host("127.0.0.1"), PAUSE, 2 * PATIENCE, force=True)])
    store.close()
    explain = ["explain", "-s", f"REP_STORE={uri}"]
    run = robots_command(*explain, site.url("/"))
    assert "the site answered 429 or 503: no requests until " in run.out
    explained = robots_command(*explain, "--json", site.url("/")).json
    seconds = explained["back_off_until"] - explained["robotstxt"]["at"]
    assert PATIENCE < seconds < 3 * PATIENCE
    other = site.url("/").replace("127.0.0.1", "127.0.0.2")
    assert robots_command(*explain, "--json", other).json["back_off_until"] is None


def test_explain_names_an_override(site, robots_command, tmp_path):
    (tmp_path / "rules").write_text("User-agent: *\nDisallow: /a\n")
    entry = {"host": site.host, "reason": "ticket 5", "until": "2999-12-31"}

    def explain(page, *options, **more):
        setting = f"REP_OVERRIDES={json.dumps([{**entry, **more}])}"
        return robots_command("explain", "-s", setting, site.url(page), *options)

    run = explain("/a", policy="file", path="rules")
    assert run.status == 1
    valid = "valid until 3000-01-01 00:00:00 UTC"
    assert f"file rules for {site.host} (ticket 5)\n  {valid}" in run.out
    assert "-> line 2     length 2    Disallow: /a" in run.out
    run = explain("/private", policy="ignore")
    assert (run.status, "Rules that match" in run.out) == (0, False)
    assert explain("/private", "--json", policy="ignore").json["override"] == {
        "host": site.host,
        "policy": "ignore",
        "reason": "ticket 5",
        "until": "3000-01-01 00:00:00+00:00",
    }


def test_an_override_is_no_robotstxt(site, robots_command, tmp_path):
    entry = {"host": site.host, "policy": "disallow", "reason": "ticket 5"}
    setting = f"REP_OVERRIDES={json.dumps([entry])}"
    asked = len(site.robots_requests)
    run = robots_command("check", "-s", setting, site.url("/"))
    assert (run.status, run.out) == (1, f"disallowed  {site.url('/')}  override, as Scrapy\n")
    assert len(site.robots_requests) == asked
    run = robots_command("lint", "-s", setting, site.url("/"))
    assert (run.status, run.lines[-1]) == (0, "7 lines, findings: 0")
    setting = setting.replace('"disallow"', '"file", "path": "none"')
    run = robots_command("check", "-s", setting, site.url("/"))
    assert (run.status, run.out) == (2, "")
    assert f"No such file or directory: '{tmp_path / 'none'}'" in run.err


@pytest.mark.spec("T-2")
def test_lint_names_what_it_finds_by_codes(robots_command):
    run = robots_command("lint", "--json", "-", stdin=FILE)
    codes = ["byte-order-mark", "misspelt", "no-path", "unknown-field"]
    assert (run.status, [finding["code"] for finding in run.json["findings"]]) == (1, codes)


@pytest.mark.spec("T-2")
def test_lint_takes_a_url(web, site, robots_command):
    assert robots_command("lint", site.url("/page")).status == 0
    assert robots_command("lint", web.site(answer(404)).url("/")).status == 0
    run = robots_command("lint", web.site(answer(503)).url("/"))
    assert (run.status, run.out) == (2, "")
    assert run.err.endswith("robots.txt is unreachable: status 503\n")


def test_what_a_site_wrote_cannot_steer_a_terminal(web, robots_command):
    evil = "User-agent: *\nDisallow: /\x1b[31m\x07\u202e\nDisallow: /\n\x1b]0;x\x07\n"
    site = web.site(robots(evil.encode()))
    for command in ("check", "explain", "lint"):
        run = robots_command(command, site.url("/%1B[31m%07%E2%80%AE"))
        assert run.status == 1
        assert all(line.isprintable() for line in run.lines)


@pytest.mark.parametrize("command", ["check", "explain", "lint"])
def test_a_password_in_a_url_is_not_printed(web, robots_command, command):
    answers = (robots("User-agent: *\nDisallow: /a"), answer(404), answer(503))
    hosts = [web.site(each).url("/a").split("//")[1] for each in answers]
    for host in (*hosts, "a.example:99999/"):
        run = robots_command(command, f"http://me:hush-hush@{host}")
        assert host.partition("/")[0] in run.out + run.err
        assert "hush-hush" not in run.out + run.err
    assert run.status == 2


def test_in_a_project_its_settings_count(site, robots_command, project, tmp_path):
    project(
        "ROBOTSTXT_OBEY = False\nUSER_AGENT = 'mybot/1.0'\nLOG_LEVEL = 'DEBUG'\n"
        "ADDONS = {'scrapy_rep.Addon': 500}\nREP_DRY_RUN = True\nREP_REPORT = 'r.json'\n"
    )
    run = robots_command("check", site.url("/a"))
    assert (run.status, run.err) == (1, "")
    assert "Disallow: / (line 6" in run.out
    assert not (tmp_path / "r.json").exists()
    again = robots_command("explain", site.url("/a"))
    assert "  line 7: crawl-delay: 5" in again.lines
    store = re.escape(str(tmp_path / ".scrapy" / "robots.sqlite"))
    assert re.search(rf", (just now|\d+ \w+ ago) \(from {store}\)\n", again.out)


def test_an_unknown_setting_is_told(site, robots_command, rules):
    told = "REP_TIMOUT is not a setting of this version of scrapy-rep; did you mean REP_TIMEOUT?\n"
    for arguments in (["check", site.url("/")], ["lint", "robots.txt"], ["plan", site.url("/")]):
        run = robots_command(*arguments, "-s", "REP_TIMOUT=3")
        assert (run.status, run.err) == (0, told)


def test_check_says_whether_it_asked_or_remembered_and_fresh_asks(web, robots_command, tmp_path):
    site = web.site(robots("User-agent: *\nDisallow: /\n"), robots(""))
    store = ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite", site.url("/a")]
    runs = [robots_command("check", *options, *store) for options in ([], [], ["--fresh"], [])]
    assert [run.status for run in runs] == [1, 1, 0, 1]
    first, again, fresh, _ = (run.out for run in runs)
    assert first.endswith(", fetched just now\n")
    assert re.search(r", fetched (just now|\d+ \w+ ago)$", again)
    assert fresh.endswith(", fetched just now\n")
    assert len(site.robots_requests) == 2


USE = "User-agent: *\nContent-Usage: train-ai=n, search=y\nContent-Signal: x\nLicense: http://a.example/l\n"


def test_explain_tells_what_is_said_about_use(web, robots_command):
    site = web.site(robots(USE))
    run = robots_command("explain", site.url("/a"), "--purpose", "search", "--purpose", "tdm")
    text = run.out[run.out.index("Usage preferences") :]
    assert [line.strip() for line in text.splitlines()[1:5]] == [
        "line 2   content-usage: train-ai=n, search=y -> train-ai: disallow",
        "line 2   content-usage: train-ai=n, search=y -> search: allow",
        "line 3   content-signal: x -> not valid",
        "line 4   license: http://a.example/l -> recorded, not evaluated",
    ]
    assert text.endswith("for search: allow\n  for tdm: unknown\n")
    assert run.status == 0
    run = robots_command("explain", site.url("/a"), "--purpose", "ai-training", "--json")
    usage = run.json["usage"]
    assert usage["results"] == {"ai-training": "disallow"}
    assert "draft-ietf-aipref-attach-05" in usage["statements"][0]["revision"]
