"""Settings are checked at the start; the addon leaves alone what the user has set."""

import logging
import re
from dataclasses import fields
from decimal import Decimal
from pathlib import Path

import pytest
from scrapy.downloadermiddlewares.httpauth import HttpAuthMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware as BuiltInMiddleware
from scrapy.settings import Settings

from scrapy_rep import (
    Addon,
    RobotsTxtFetchMiddleware,
    RobotsTxtMiddleware,
    RobotsTxtResponseMiddleware,
    SettingsError,
)
from scrapy_rep.settings import _GONE, Options, unknown_settings
from scrapy_rep.stores.uri import make_store
from tests.crawling.crawl import crawl
from tests.crawling.web import robots

NO_STORES = """
    robots.sqlite redis:// redis://localhost:port mysql://localhost redis+cluster://a,b
    memory://?timeout=1 sqlite:///x?max_age=0 sqlite:///x?timeout=1e10 sqlite:///x?max_bytes=1000
    redis://localhost?prefix=a%0Ab
"""
WRONG = {
    "REP_STORE": [*NO_STORES.split(), 5],
    "REP_MEMORY_MAX_BYTES": [0, "many", 1.5, True],
    "REP_CACHE_TTL": [-1, "a day", float("nan"), float("inf")],
    "REP_CACHE_TTL_MIN": [-1],
    "REP_CACHE_TTL_MAX": [[5]],
    "REP_TIMEOUT": [0, True, "1e999"],
    "REP_CONCURRENT_FETCHES": [Decimal("2.9"), 0, "9" * 400],
    "REP_UNREACHABLE_STALE_AFTER": [-1],
    "REP_UNREACHABLE_ALLOW_AFTER": [{}],
    "REP_RETRY_DELAY": [0],
    "REP_BACK_OFF_MAX": [-1],
    "REP_RETRY_DELAY_MAX": ["hour"],
    "REP_DRY_RUN": ["perhaps"],
    "REP_META_TAGS": [True, "keep", 5],
    "REP_PURPOSES": ["seo", [1], [None], ",", True],
    "REP_USAGE_ACTION": ["keep"],
    "REP_REPORT": ["report.txt", 5, "a\0.json", True],
    "REP_EVIDENCE": ["a\0.jsonl", "file:///a.jsonl", "evidence", "a.json", "a.gz"],
    "REP_DEFER_TIMEOUT": [-1, "for ever"],
    "REP_CRAWL_DELAY_MAX": [-1, float("inf")],
    "ROBOTSTXT_USER_AGENT": [5, [], ["bot", 5], "*", "[" * 3_000, '["mybot"', "[5]", ["böt"]],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_a_wrong_value_is_refused_with_name_value_and_what_is_taken(name, value):
    with pytest.raises(SettingsError) as caught:
        Options.from_settings(Settings({name: value}))
    message = str(caught.value)
    assert message.startswith(f"{name} is {value!r}: it must be ")
    assert "\n" not in message


PATH, REDIS = "'sqlite:///PATH'", "'redis://HOST:PORT/NUMBER'"
STORES = f"'memory://', {PATH}, {REDIS}, ..."
MISTAKES_IN_A_STORE = {
    "sqlite:x": PATH,
    "sqlite://x": PATH,
    "sqlite3:///x": STORES,
    "sqlite:///x?timeuot=2": "a URI whose options are timeout, ..., and not 'timeuot'; did you mean 'timeout'?",
    "sqlite:sqlite:///x.db": PATH,
    "redis://host?prefx=a": "a URI whose options are prefix, ..., and not 'prefx'; did you mean 'prefix'?",
    "memory://?a": "a URI whose options are none, and not 'a'",
    "redis://h?timeout=-1": "a URI whose timeout is a number of seconds from 0.05 to 3,600",
    "sqlite:///:memory:": f"{PATH}; did you mean 'memory://'?",
    "sqlite:///~/x": f"{PATH}; did you mean 'sqlite:///{Path.home()}/x'?",
    "sqlite:///~nobody-here/x": PATH,
    "memory": "'memory://'",
    "redis://host/abc": REDIS,
    "redis://host/0#1": REDIS,
    "unix:///run/redis.sock#1": "'unix:///PATH'",
    "redis://host?max_connections=1": "a URI whose max_connections is a whole number ..., 2 or more",
    "redis:me:pass@host": REDIS,
    "Redis://host": STORES,
    "unix:run/redis.sock": "'unix:///PATH'",
    "/tmp/x.db": STORES,
    "http://host": STORES,
}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        *(("REP_STORE", value, told) for value, told in MISTAKES_IN_A_STORE.items()),
        ("REP_PURPOSES", "seo", "a list of 'search', 'ai-input', 'ai-training', 'tdm'"),
        ("REP_EVIDENCE", "evidence", "a path that ends in .jsonl or .jsonl.gz"),
    ],
)
def test_a_mistake_that_is_known_is_told_with_what_may_be_meant(name, value, told):
    with pytest.raises(SettingsError) as caught:
        Options.from_settings(Settings({name: value}))
    message = str(caught.value).partition(": it must be ")[2]
    assert re.fullmatch(re.escape(told).replace(r"\.\.\.", ".*"), message), message


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("REP_STORES", "; did you mean REP_STORE?"),
        ("rep_store", "; did you mean REP_STORE?"),
        ("REP_TIMEOUT ", "; did you mean REP_TIMEOUT?"),
        ("ROBOTSTXT_USERAGENT", "; did you mean ROBOTSTXT_USER_AGENT?"),
        ("REP_FOO", ""),
    ],
)
def test_a_setting_that_is_unknown_is_told_with_what_may_be_meant(name, meant):
    settings = Settings({name: 5, "REP_TIMEOUT": 5, "ROBOTSTXT_PARSER": "a", "REPORT": 5})
    told = f"{name} is not a setting of this version of scrapy-rep{meant}"
    assert unknown_settings(settings) == [told]


@pytest.mark.parametrize("name", _GONE)
def test_a_setting_that_is_gone_is_told_with_what_takes_its_place(name):
    with pytest.raises(SettingsError) as caught:
        Addon().update_settings(Settings({name: False}))
    assert str(caught.value) == f"{name} is not a setting any more: {_GONE[name]}"
    named = set(re.findall(r"\b(?:REP|ROBOTSTXT)_[A-Z_]+", _GONE[name]))
    assert named <= {option.metadata["name"] for option in fields(Options)}


PAIRS = [("REP_CACHE_TTL_MIN", "REP_CACHE_TTL_MAX"), ("REP_RETRY_DELAY", "REP_RETRY_DELAY_MAX")]


@pytest.mark.parametrize(("low", "high"), PAIRS)
@pytest.mark.parametrize(("name", "value"), [("low", "100000"), ("high", "5")])
def test_a_default_gives_way_to_what_is_set(low, high, name, value):
    set_name = {"low": low, "high": high}[name]
    options = Options.from_settings(Settings({set_name: value}))
    found = {each.metadata["name"]: getattr(options, each.name) for each in fields(options)}
    assert found[low] == found[high] == float(value)


@pytest.mark.parametrize(("low", "high"), PAIRS)
def test_of_two_values_that_contradict_each_other_both_are_named(low, high):
    with pytest.raises(SettingsError) as caught:
        Options.from_settings(Settings({low: 7200, high: "5"}))
    assert str(caught.value) == f"{low} is 7200.0: it must be at most {high}, which is 5.0"


@pytest.mark.parametrize(
    "uri",
    [
        "redis://user:secret@host:port/0",
        "redis://:sec@ret@host:x",
        "postgres://me:secret@host/db?password=secret",
        "redis://host:port/0?password=secret",
    ],
)
def test_a_password_is_in_no_message(uri):
    with pytest.raises(SettingsError) as caught:
        make_store(Options.from_settings(Settings({"REP_STORE": uri})).store, 0)
    assert "REP_STORE is " in str(caught.value)
    assert "***" in str(caught.value)
    for part in ("secret", "sec", "ret@", "user", "me:"):
        assert part not in str(caught.value).partition(": it must be")[0].replace("redis-py", "")


def test_a_password_is_not_among_what_was_changed():
    options = Options.from_settings(Settings({"REP_STORE": "rediss://u:secret@h/0?a=b"}))
    assert options.non_default() == {"REP_STORE": "rediss://***@h/0?a=***"}


@pytest.mark.parametrize(
    ("name", "value", "field", "read"),
    [
        ("REP_CONCURRENT_FETCHES", "7", "concurrent_fetches", 7),
        ("REP_CACHE_TTL", 0, "cache_ttl", 0.0),
        ("REP_META_TAGS", "0", "meta_tags", False),
        ("REP_META_TAGS", "drop", "meta_tags", "drop"),
        ("REP_OVERRIDES", "", "overrides", ()),
        ("REP_REPORT", "", "report", None),
        ("REP_REPORT", Path("a.html"), "report", "a.html"),
        ("ROBOTSTXT_USER_AGENT", "mybot", "tokens", ("mybot",)),
        ("ROBOTSTXT_USER_AGENT", ["mybot-news", "mybot"], "tokens", ("mybot-news", "mybot")),
        ("ROBOTSTXT_USER_AGENT", '["mybot-news", "mybot"]', "tokens", ("mybot-news", "mybot")),
        ("ROBOTSTXT_USER_AGENT", None, "tokens", None),
        ("ROBOTSTXT_USER_AGENT", "", "tokens", None),
    ],
)
def test_values_as_settings_and_the_command_line_give_them(name, value, field, read):
    assert getattr(Options.from_settings(Settings({name: value})), field) == read


def test_defaults_are_valid_and_nothing_is_changed():
    assert Options.from_settings(Settings()) == Options()
    assert Options().non_default() == {}


class OwnMiddleware(RobotsTxtMiddleware):
    pass


def test_a_wrong_value_stops_the_crawl_where_its_settings_are_made():
    # A component that raises is some frames farther down in the traceback that Scrapy prints.
    with pytest.raises(SettingsError, match="REP_TIMEOUT is 'soon'"):
        Addon().update_settings(Settings({"REP_TIMEOUT": "soon"}))
    not_obeying = Settings({"REP_TIMEOUT": "soon", "ROBOTSTXT_OBEY": False}, priority="project")
    Addon().update_settings(not_obeying)


@pytest.mark.parametrize(
    ("components", "warned"),
    [
        ({}, False),
        ({"scrapy_rep.RobotsTxtMiddleware": None}, True),
        ({"scrapy_rep.RobotsTxtMiddleware": None, OwnMiddleware: 100}, False),
    ],
)
def test_a_middleware_that_is_switched_off_is_told(components, warned, caplog):
    Addon().update_settings(Settings({"DOWNLOADER_MIDDLEWARES": components}))
    message = (
        "robots.txt is not obeyed, because DOWNLOADER_MIDDLEWARES disables RobotsTxtMiddleware"
    )
    assert (message in caplog.messages) == warned


async def middlewares(settings):
    seen = []

    def opened(crawler):
        seen.extend(map(type, crawler.engine.downloader.middleware.middlewares))

    result = await crawl(settings=settings, opened=opened)
    return seen, result.crawler.settings


BUILTIN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
OURS = "scrapy_rep.RobotsTxtMiddleware"


async def test_the_addon_takes_the_place_of_the_builtin():
    seen, settings = await middlewares({})
    assert BuiltInMiddleware not in seen
    assert seen.index(RobotsTxtMiddleware) == 2
    assert seen[0] is RobotsTxtResponseMiddleware
    assert seen[-1] is RobotsTxtFetchMiddleware
    assert settings.getbool("ROBOTSTXT_OBEY")
    assert settings["ROBOTSTXT_PARSER"] == "scrapy_rep.RobotParser"


@pytest.mark.parametrize(
    ("builtin", "order", "behind"),
    # It comes first among those of the same order.
    [(BUILTIN, 320, 1), (BuiltInMiddleware, 320, 1), (BUILTIN, 300, -1)],
)
async def test_the_builtin_moved_by_the_user_is_replaced_where_it_was(builtin, order, behind):
    seen, _ = await middlewares({"DOWNLOADER_MIDDLEWARES": {builtin: order}})
    assert BuiltInMiddleware not in seen
    assert seen.index(RobotsTxtMiddleware) == seen.index(HttpAuthMiddleware) + behind


class Records:
    def __init__(self):
        self.seen = []

    def process_request(self, request):
        self.seen.append(request.url)


@pytest.mark.parametrize("order", [100, 100.0, 300])
async def test_a_middleware_of_the_same_order_gets_no_disallowed_request(web, order):
    site = web.site(robots("User-agent: *\nDisallow: /private"))
    moved = {} if order == 100 else {BUILTIN: order}
    result = await crawl(
        site.url("/private"),
        site.url("/public"),
        settings={"DOWNLOADER_MIDDLEWARES": {Records: order, **moved}},
    )
    records = result.crawler.get_downloader_middleware(Records)
    assert [url for url in records.seen if not url.endswith("/robots.txt")] == [site.url("/public")]


async def test_what_the_user_has_set_or_switched_off_stays():
    seen, _ = await middlewares({"DOWNLOADER_MIDDLEWARES": {Records: 100, OURS: 100}})
    assert seen.index(RobotsTxtMiddleware) == seen.index(Records) + 1
    seen, _ = await middlewares({"DOWNLOADER_MIDDLEWARES": {OURS: 320}})
    assert seen.index(RobotsTxtMiddleware) == seen.index(HttpAuthMiddleware) + 1
    seen, _ = await middlewares({"DOWNLOADER_MIDDLEWARES": {OURS: None}})
    assert not {BuiltInMiddleware, RobotsTxtMiddleware} & set(seen)
    seen, settings = await middlewares({"ROBOTSTXT_OBEY": False, "ROBOTSTXT_PARSER": BUILTIN})
    assert not {BuiltInMiddleware, RobotsTxtMiddleware} & set(seen)
    assert settings["ROBOTSTXT_PARSER"] == BUILTIN


class Kept(BuiltInMiddleware):
    """A subclass of Scrapy's own that a project has from before."""


BY_HAND = {
    "ADDONS": {},
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        OURS: 90,
        "scrapy_rep.RobotsTxtFetchMiddleware": 901,
        "scrapy_rep.RobotsTxtResponseMiddleware": 0,
    },
}


@pytest.mark.parametrize(
    ("settings", "second"),
    [
        ({"DOWNLOADER_MIDDLEWARES": {Kept: 100}}, f"{__name__}.Kept"),
        ({"DOWNLOADER_MIDDLEWARES": {BUILTIN: 100, Kept: 100}}, f"{__name__}.Kept"),
        (BY_HAND, BUILTIN),
        ({"DOWNLOADER_MIDDLEWARES": {Kept: None}}, None),
    ],
)
async def test_a_second_middleware_for_robotstxt_is_named(web, settings, second):
    site = web.site(robots(""))
    result = await crawl(site.url("/"), settings=settings)
    assert len(site.robots_requests) == (1 if second is None else 2)
    told = [
        "DOWNLOADER_MIDDLEWARES has another middleware for robots.txt, which fetches each file "
        f"again and drops requests, too: {second}. Remove it, or base it on "
        "scrapy_rep.RobotsTxtMiddleware"
    ]
    assert result.messages(logging.WARNING) == (told if second else [])


@pytest.mark.parametrize(
    ("settings", "spider", "what"),
    [
        ({"ROBOTSTXT_OBEY": False}, {}, "ROBOTSTXT_OBEY is False in the project settings"),
        ({"ROBOTSTXT_OBEY": "0"}, {}, "ROBOTSTXT_OBEY is '0' in the project settings"),
        ({}, {"ROBOTSTXT_OBEY": False}, "ROBOTSTXT_OBEY is False in the spider settings"),
        (
            {"ADDONS": {}, "DOWNLOADER_MIDDLEWARES": {BUILTIN: None, OURS: 100}},
            {},
            "ROBOTSTXT_OBEY is False in the default settings",
        ),
    ],
)
async def test_a_crawl_that_does_not_obey_tells_what_decides_it(settings, spider, what):
    result = await crawl(settings=settings, custom_settings=spider)
    (warning,) = result.messages(logging.WARNING, name="scrapy")
    assert "RobotsTxtMiddleware" in warning
    assert warning.endswith(f": robots.txt is not obeyed, because {what}")


async def test_without_the_addon_the_middlewares_can_be_set_by_hand(web):
    site = web.site(robots("User-agent: *\nDisallow: /private"))
    middlewares = {**BY_HAND["DOWNLOADER_MIDDLEWARES"], BUILTIN: None}
    settings = {**BY_HAND, "DOWNLOADER_MIDDLEWARES": middlewares}
    for _ in range(2):
        result = await crawl(site.url("/private"), settings=settings)
        assert result.dropped == {site.url("/private"): "rule"}
        middlewares.pop("scrapy_rep.RobotsTxtResponseMiddleware", None)
    missing = "scrapy_rep.RobotsTxtFetchMiddleware"
    del middlewares[missing]
    with pytest.raises(SettingsError, match=f"DOWNLOADER_MIDDLEWARES .* takes {missing} at"):
        await crawl(site.url("/private"), settings=settings)


@pytest.mark.parametrize(
    ("parser", "warns"),
    [
        ("scrapy.robotstxt.PythonRobotParser", True),
        ("mine.Missing", True),
        ("scrapy_rep.RobotParser", False),
    ],
)
async def test_a_parser_of_the_user_is_not_used_which_is_told(web, parser, warns):
    result = await crawl(web.site(robots("")).url("/"), settings={"ROBOTSTXT_PARSER": parser})
    warnings = [text for text in result.messages(logging.WARNING) if "PARSER" in text]
    told = (
        f"ROBOTSTXT_PARSER is {parser!r}, and is not used: robots.txt is read by scrapy-rep's own "
        "parser. Remove the setting"
    )
    assert warnings == [told] * warns
