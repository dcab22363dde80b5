"""``scrapy robots cache``, on stores that crawls filled."""

import base64
import json

import pytest

from tests.crawling.web import RULES, answer, robots
from tests.sql import execute

EVIL = b"User-agent: *\r\nDisallow: /\x1b[31m\x07\xff\n# \xe2\x80\xae\x0bx"


@pytest.fixture
def sqlite(tmp_path):
    """A store that is empty, as the arguments that name it."""
    return ["-s", f"REP_STORE=sqlite:///{tmp_path}/robots.sqlite"]


@pytest.fixture
def redis(redis_server):
    redis_server.client.flushall()
    return ["-s", f"REP_STORE={redis_server.uri}"]


@pytest.fixture(params=["sqlite", "redis"])
def store(request):
    return request.getfixturevalue(request.param)


def test_cache_list_tells_what_crawls_left(web, store, robots_command):
    sites = [web.site(robots(RULES)), web.site(answer(404)), web.site(answer(503))]
    robots_command("check", *store, *(site.url("/") for site in sites))
    run = robots_command("cache", "list", *store)
    lines = sorted(run.lines[:-1])
    begins = [
        f"available    {sites[0].url('')}  status 200, {len(RULES)} bytes, fetched ",
        f"unavailable  {sites[1].url('')}  status 404, fetched ",
        f"unreachable  {sites[2].url('')}  status 503, tried ",
    ]
    assert [line.startswith(begin) for line, begin in zip(lines, begins, strict=True)] == [True] * 3
    assert run.lines[-1].endswith("holds 3 origins")
    assert (run.status, run.err) == (0, "")
    listed = map(json.loads, robots_command("cache", "list", "--json", *store).lines)
    found = {each["origin"]: each for each in listed}
    outcomes = {each["outcome"] for each in found.values()}
    assert outcomes == {"available", "unavailable", "unreachable"}
    assert found[sites[2].url("")]["next_try"] > found[sites[2].url("")]["at"]
    assert all(len(site.robots_requests) == 1 for site in sites)


def test_cache_show_tells_all_of_an_origin(web, store, robots_command):
    site = web.site(robots(EVIL))
    robots_command("check", *store, site.url("/"))
    run = robots_command("cache", "show", *store, site.url("/some/page"))
    assert run.status == 0
    lines = run.lines
    assert f"  {site.url('')}/robots.txt: available (status 200)" in lines
    assert lines[-3:] == [
        "  User-agent: *",
        "  Disallow: /\\x1b[31m\\x07\\xff",
        "  # \\u202e\\x0bx",
    ]
    assert all(line.isprintable() for line in lines)
    shown = robots_command("cache", "show", "--json", *store, site.url("")).json
    assert base64.b64decode(shown["body_base64"]) == EVIL
    assert shown["outcome"] == "available"


def test_cache_drop_lets_the_next_crawl_fetch(web, store, robots_command):
    site = web.site(robots(RULES), robots("User-agent: *\nDisallow: /\n"))
    robots_command("check", *store, site.url("/"))
    assert robots_command("check", *store, site.url("/")).status == 0
    run = robots_command("cache", "drop", *store, site.url(""))
    assert (run.status, run.out) == (0, f"dropped: {site.url('')}\n")
    again = robots_command("cache", "drop", *store, site.url(""))
    assert (again.status, again.out) == (1, "")
    assert f"has no record of {site.url('')}" in again.err
    assert robots_command("cache", "show", *store, site.url("")).status == 1
    assert robots_command("check", *store, site.url("/")).status == 1
    assert len(site.robots_requests) == 2


def test_cache_shows_no_raw_text_of_a_store(web, sqlite, robots_command, tmp_path):
    robots_command("check", *sqlite, web.site(robots(RULES)).url("/"))
    for name in ["https://\x1b[31m.example", "no origin", ""]:
        values = (name, b"j", b"")
        execute(tmp_path / "robots.sqlite", "INSERT INTO records VALUES (?, 1e9, ?, ?)", *values)
    run = robots_command("cache", "list", *sqlite)
    assert run.status == 0
    assert run.out.count("unreadable") == 3
    assert "https://\\x1b[31m.example" in run.out
    assert run.out.count("available") == 1


@pytest.mark.parametrize("action", ["list", "show", "drop"])
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


@pytest.mark.real_process
def test_cache_takes_the_store_of_a_project(web, robots_command, project, tmp_path):
    site = web.site(robots(RULES))
    project("ADDONS = {'scrapy_rep.Addon': 500}\n")
    assert "there is no file" in robots_command("cache", "list").err
    robots_command("check", site.url("/"))
    run = robots_command("cache", "list")
    store = tmp_path / ".scrapy" / "robots.sqlite"
    assert run.lines[-1] == f"{store} holds 1 origin"
    run = robots_command("cache", "list", "-s", "REP_STORE=memory://")
    assert (run.status, run.out) == (2, "")
    assert "name a store of crawls" in run.err
