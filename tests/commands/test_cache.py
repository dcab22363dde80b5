"""``scrapy robots cache``, on stores that crawls filled."""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from contextlib import closing

import pytest

from tests.crawling.web import answer, redirect, robots

RULES = "User-agent: *\nDisallow: /private\n"
EVIL = b"User-agent: *\r\nDisallow: /\x1b[31m\x07\xff\n# \xe2\x80\xae\x0bx"


@pytest.fixture(params=["sqlite", "redis"])
def store(request, tmp_path):
    """A store that is empty, as the arguments that name it."""
    if request.param == "sqlite":
        return ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite"]
    server = request.getfixturevalue("redis_server")
    server.client.flushall()
    return ["-s", f"REP_STORE={server.uri}"]


def origin(site):
    return site.url("").rstrip("/")


def bodies(run):
    return [json.loads(line) for line in run.out.splitlines()]


def test_cache_list_tells_what_crawls_left(web, store, robots_command):
    sites = [web.site(robots(RULES)), web.site(answer(404)), web.site(answer(503))]
    robots_command("check", *store, *(site.url("/") for site in sites))
    run = robots_command("cache", "list", *store)
    lines = sorted(run.out.splitlines()[:-1])
    begins = [
        f"available    {origin(sites[0])}  status 200, {len(RULES)} bytes, fetched ",
        f"unavailable  {origin(sites[1])}  status 404, fetched ",
        f"unreachable  {origin(sites[2])}  status 503, fetched ",
    ]
    assert [line.startswith(begin) for line, begin in zip(lines, begins, strict=True)] == [True] * 3
    assert run.out.splitlines()[-1].endswith("holds 3 origins")
    assert (run.status, run.err) == (0, "")
    found = {
        each["origin"]: each for each in bodies(robots_command("cache", "list", "--json", *store))
    }
    assert {each["outcome"] for each in found.values()} == {
        "available",
        "unavailable",
        "unreachable",
    }
    assert found[origin(sites[2])]["next_try"] > found[origin(sites[2])]["at"]
    assert all(len(site.robots_requests) == 1 for site in sites)


def test_cache_show_tells_all_of_an_origin(web, store, robots_command):
    site = web.site(robots(EVIL))
    robots_command("check", *store, site.url("/"))
    run = robots_command("cache", "show", *store, site.url("/some/page"))
    assert run.status == 0
    lines = run.out.splitlines()
    assert f"  {origin(site)}/robots.txt: available (status 200)" in lines
    assert lines[-3:] == [
        "  User-agent: *",
        "  Disallow: /\\x1b[31m\\x07\\xff",
        "  # \\u202e\\x0bx",
    ]
    assert all(line.isprintable() for line in lines)
    (shown,) = bodies(robots_command("cache", "show", "--json", *store, origin(site)))
    assert base64.b64decode(shown["body_base64"]) == EVIL
    assert shown["outcome"] == "available"


def test_cache_drop_lets_the_next_crawl_fetch(web, store, robots_command):
    site = web.site(robots(RULES), robots("User-agent: *\nDisallow: /\n"))
    robots_command("check", *store, site.url("/"))
    assert robots_command("check", *store, site.url("/")).status == 0
    run = robots_command("cache", "drop", *store, origin(site))
    assert (run.status, run.out) == (0, f"dropped: {origin(site)}\n")
    again = robots_command("cache", "drop", *store, origin(site))
    assert (again.status, again.out) == (1, "")
    assert f"has no record of {origin(site)}" in again.err
    assert robots_command("cache", "show", *store, origin(site)).status == 1
    assert robots_command("check", *store, site.url("/")).status == 1
    assert len(site.robots_requests) == 2


def test_cache_refresh_fetches_what_still_holds_and_tells_the_change(web, store, robots_command):
    site = web.site(
        robots(RULES), robots(RULES), robots("User-agent: *\nDisallow: /\x1b\n"), answer(503)
    )
    first = robots_command("cache", "refresh", *store, origin(site))
    assert first.status == 0
    assert first.out.splitlines()[1] == "  before: not stored"
    same = robots_command("cache", "refresh", *store, origin(site))
    assert (same.status, same.out.splitlines()[-1]) == (0, "  the text is the same")
    changed = robots_command("cache", "refresh", *store, origin(site))
    assert changed.status == 0
    assert changed.out.splitlines()[-3:] == [
        "  @@ -2 +2 @@",
        "  -Disallow: /private",
        "  +Disallow: /\\x1b",
    ]
    assert robots_command("check", *store, site.url("/private")).status == 0
    assert len(site.robots_requests) == 3
    failed = robots_command("cache", "refresh", "--json", *store, origin(site))
    assert failed.status == 2
    (values,) = bodies(failed)
    assert (values["before"]["outcome"], values["after"]["outcome"]) == ("available", "unreachable")
    assert values["changed"] is False
    (shown,) = bodies(robots_command("cache", "show", "--json", *store, origin(site)))
    assert shown["body"] == "User-agent: *\nDisallow: /\x1b\n"


def test_cache_takes_a_tdmrep_json_by_its_url(web, store, robots_command):
    text, other = (f'[{{"location": "/", "tdm-reservation": {n}}}]' for n in (1, 0))
    path = "/.well-known/tdmrep.json"
    site = web.site(
        robots(RULES), paths={path: [answer(200, text), answer(200, other), answer(503)]}
    )
    file = origin(site) + path
    judged = ["-s", "REP_PURPOSES=tdm", "-s", "REP_USAGE_SOURCES=tdmrep"]
    judged += ["-s", "REP_USAGE_ACTION=drop"]
    assert robots_command("cache", "show", *store, file).status == 1
    assert robots_command("check", *store, *judged, site.url("/")).status == 1
    listed = robots_command("cache", "list", *store).out.splitlines()
    assert [line.split()[:2] for line in sorted(listed[:-1])] == [
        ["available", origin(site)],
        ["available", file],
    ]
    assert listed[-1].endswith("holds 1 origin")
    shown = robots_command("cache", "show", *store, file).out.splitlines()
    assert (shown[0], shown[-2:]) == ("tdmrep.json", ["Text", f"  {text}"])
    assert f"  {file}: available (status 200)" in shown
    refreshed = robots_command("cache", "refresh", *store, *judged, file)
    assert refreshed.status == 0
    assert (refreshed.out.splitlines()[0], refreshed.out.splitlines()[-1]) == (file, f"  +{other}")
    assert robots_command("check", *store, *judged, site.url("/")).status == 0
    run = robots_command("cache", "drop", *store, file)
    assert (run.status, run.out) == (0, f"dropped: {file}\n")
    assert robots_command("cache", "show", *store, origin(site)).status == 0
    assert robots_command("cache", "refresh", *store, file).status == 2
    shown = robots_command("cache", "show", *store, file).out.splitlines()
    assert shown[-1] == "  until then it is unknown what it reserves"
    assert site.targets == [path] * 3


def test_cache_refresh_fetches_no_tdmrep_json_that_is_disallowed(web, store, robots_command):
    site = web.site(robots("User-agent: *\nDisallow: /.well-known\n"))
    run = robots_command("cache", "refresh", *store, site.url("/.well-known/tdmrep.json"))
    assert (run.status, run.out, site.targets) == (1, "", [])
    assert "tdmrep.json is not fetched: Disallow: /.well-known (line 2 of" in run.err


def test_cache_refresh_follows_a_tdmrep_json_to_no_disallowed_url(web, store, robots_command):
    rules = robots("User-agent: *\nDisallow: /private\n")
    path = "/.well-known/tdmrep.json"
    site = web.site(rules, paths={path: [redirect("/private/tdmrep.json")]})
    run = robots_command("cache", "refresh", *store, site.url(path))
    assert "redirect to a disallowed URL" in run.out
    assert site.targets == [path]


def test_cache_prune_drops_what_is_too_old(web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    store = ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite"]
    robots_command("check", *store, site.url("/"))
    assert bodies(robots_command("cache", "prune", "--json", *store)) == [{"dropped": 0}]
    with closing(sqlite3.connect(tmp_path / "robots.sqlite")) as connection, connection:
        connection.execute("UPDATE records SET written = written - 10000000")
    run = robots_command("cache", "prune", *store)
    assert (run.status, run.out) == (0, "records dropped: 1\n")
    assert "holds 0 origins" in robots_command("cache", "list", *store).out


def test_cache_shows_no_raw_text_of_a_store(web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    store = ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite"]
    robots_command("check", *store, site.url("/"))
    origins = ["https://\x1b[31m.example", "no origin", ""]
    with closing(sqlite3.connect(tmp_path / "robots.sqlite")) as connection, connection:
        for name in origins:
            connection.execute("INSERT INTO records VALUES (?, 1e9, ?)", (name, b"junk"))
        connection.execute("INSERT INTO records VALUES (?, 1e9, ?)", (b"\xff", b"junk"))
    run = robots_command("cache", "list", *store)
    assert run.status == 0
    assert run.out.count("unreadable") == 2
    assert "https://\\x1b[31m.example" in run.out
    assert run.out.count("available") == 1


@pytest.mark.parametrize("action", ["list", "prune", "show", "drop"])
def test_cache_of_a_store_that_is_not_there(action, robots_command, tmp_path):
    arguments = [action] + ["https://a.example"] * (action in {"show", "drop"})
    path = tmp_path / "robots.sqlite"
    run = robots_command("cache", *arguments, "-s", f"REP_STORE=sqlite:///{path}")
    assert (run.status, run.out) == (len(arguments) - 1, "")
    assert f"there is no file {path}" in run.err
    assert list(tmp_path.iterdir()) == []
    run = robots_command("cache", *arguments, "-s", "REP_STORE=redis://:secret@127.0.0.1:1/0")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("redis://***@127.0.0.1:1/0: ConnectionError")
    assert "secret" not in run.err


def test_cache_leaves_a_file_of_others_as_it_is(robots_command, tmp_path):
    path = tmp_path / "theirs"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name)")
    before = path.read_bytes()
    for arguments in (["list"], ["prune"], ["drop", "https://a.example"]):
        run = robots_command("cache", *arguments, "-s", f"REP_STORE=sqlite:///{path}")
        assert (run.status, run.out) == (2, "")
        assert "of another program" in run.err
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


@pytest.mark.parametrize("action", ["drop", "refresh", "prune"])
def test_cache_changes_nothing_with_an_unknown_setting(action, web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (tmp_path / "settings.py").touch()
    robots_command("check", site.url("/"))
    before = robots_command("cache", "list", "--json").out
    arguments = [action] + [site.url("/")] * (action != "prune")
    run = robots_command("cache", *arguments, "-s", "REP_STORES=sqlite:///other.sqlite")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("REP_STORES is not a setting of this version of scrapy-rep; did you ")
    assert f"cache {action} takes no unknown settings: nothing was changed" in run.err
    run = robots_command("cache", "list", "--json", "-s", "REP_STORES=sqlite:///other.sqlite")
    assert (run.status, run.out) == (0, before)
    assert "did you mean REP_STORE?" in run.err
    assert len(site.robots_requests) == 1


@pytest.mark.real_process
def test_cache_takes_the_store_of_a_project(web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
    (tmp_path / "settings.py").write_text("ADDONS = {'scrapy_rep.Addon': 500}\n")
    assert "there is no file" in robots_command("cache", "list").err
    robots_command("check", site.url("/"))
    run = robots_command("cache", "list")
    store = tmp_path / ".scrapy" / "robots.sqlite"
    assert run.out.splitlines()[-1] == f"{store} holds 1 origin"
    run = robots_command("cache", "list", "-s", "REP_STORE=memory://")
    assert (run.status, run.out) == (2, "")
    assert "nothing of that outlives a process" in run.err


@pytest.mark.parametrize(
    "mode",
    [
        ["TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor"],
        ["TWISTED_REACTOR_ENABLED=False"],
    ],
)
def test_cache_in_the_other_modes(mode, web, robots_command, tmp_path):
    site = web.site(robots(RULES))
    settings = [f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite", *mode]
    store = [word for setting in settings for word in ("-s", setting)]
    assert robots_command("cache", "refresh", *store, origin(site)).status == 0
    assert "holds 1 origin" in robots_command("cache", "list", *store).out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "cache requires an action, one of: list, show ORIGIN"),
        (["frobnicate"], "refresh ORIGIN, drop ORIGIN, prune (got: 'frobnicate')\n"),
        (["list", "https://a.example"], "cache list takes no arguments"),
        (["show"], "cache show takes one origin"),
        (["drop", "https://a.example", "https://b.example"], "cache drop takes one origin"),
        (["show", "a.example"], "did you mean https://a.example or http://a.example?"),
        (["drop", "a.example:8080/x"], "did you mean https://a.example:8080 or http://"),
        (["show", "mailto:a@b"], "mailto:a@b: not an absolute http, https or ftp URL\n"),
        (["show", "localhost:80"], "did you mean https://localhost:80 or http://localhost:80?"),
        (["list", "-s", "REP_STORE=redis://a/b"], "'redis://HOST:PORT/NUMBER', with the number"),
        (["list"], "outside of a project, name a store: -s REP_STORE=sqlite:///robots.sqlite"),
        (["list", "--agent", "a"], "--agent is an option of check, explain and plan only"),
        (["list", "-s", "REP_STORE=redis://"], "REP_STORE is 'redis://': it must be"),
        (["list", "-s", "REP_STORE=redis://a?db=x"], "redis-py can't read that URL"),
        (["list", "-s", "REP_STORE=redis://a?nosuch=1"], "redis-py can't read that URL"),
        (["list", "-s", "REP_STORE=rediss://a?nosuch=1"], "redis-py can't read that URL"),
        (["list", "-s", "REP_STORE=redis+sentinel://a/b?nosuch=1"], "redis-py can't read that"),
    ],
)
def test_wrong_usage_of_cache_is_status_2(robots_command, arguments, says):
    run = robots_command("cache", *arguments)
    assert run.status == 2
    assert says in run.err


def test_what_there_is_one_of_is_counted_in_the_singular(web, store, robots_command, tmp_path):
    site = web.site(robots("#"), robots("#\n" * 3_000), robots("#"), answer(503))
    page = site.url("/")
    refresh = ["cache", "refresh", *store, page]
    runs = [
        robots_command("explain", *store, page),
        robots_command("cache", "list", *store),
        robots_command("cache", "show", *store, page),
        *(robots_command(*refresh) for _ in range(3)),
        robots_command("cache", "list", *store),
    ]
    printed = "\n".join(run.out for run in runs)
    assert "status 200, 1 byte, fetched" in printed
    assert "\n  1 byte\n" in printed
    assert "the text has changed, from 1 to 3000 lines" in printed
    assert "the text has changed, from 3000 to 1 line\n" in printed
    assert "a copy of 1 byte," in printed
    assert "holds 1 origin\n" in printed
    assert not re.findall(r"\b1 [a-z]+s\b", printed)
