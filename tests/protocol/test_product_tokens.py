"""Product tokens: SPEC G-3, RFC 9309 §2.2.1."""

import pytest

from scrapy_rep.protocol.product_tokens import (
    is_product_token,
    tokens_of_header,
    tokens_of_name,
    tokens_of_setting,
)


@pytest.mark.rfc9309("2.2.1")
def test_product_token():
    assert all(map(is_product_token, ["googlebot", "Googlebot-News", "foo_bot", "-"]))
    others = ["", "*", "bot2", "my.bot", "foo bar", "foo/1.0", "bät", "foo\n"]
    assert not any(map(is_product_token, others))


@pytest.mark.parametrize(
    ("value", "tokens"),
    [
        ("mybot", ("mybot",)),
        ("mybot-news, mybot", ("mybot-news", "mybot")),
        (["mybot-images", "mybot"], ("mybot-images", "mybot")),
        (("mybot", "MyBot", "other"), ("mybot", "other")),
        (["", " ", "mybot"], ("mybot",)),
        ("", ()),
        ("*", ()),
        ("mybot*", ("mybot",)),
        ("mybot/1.0", ("mybot",)),
        ("Mozilla/5.0 (compatible; mybot/1.0; +http://example.com/bot.html)", ("mybot",)),
        (["mybot-images", "Scrapy/2.19 (+https://scrapy.org)"], ("mybot-images", "Scrapy")),
        (["008", "x"], ("008", "x")),
        ("mybot/1.0 (från Umeå)", ("mybot",)),
    ],
)
def test_tokens_of_setting(value, tokens):
    assert tokens_of_setting(value) == tokens


@pytest.mark.parametrize(
    "value",
    ["jävla-fanbot", "jävla-fanbot/1.0", ["mybot", "ä"], "mybot,", ["https://a.example/bot", "b"]],
)
def test_a_setting_whose_names_would_be_cut_or_lost_is_refused(value):
    with pytest.raises(ValueError, match="is no product token"):
        tokens_of_setting(value)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("mybot*", ("mybot",)),
        ("008", ("008",)),
        ("*", ()),
        ("jävla-fanbot", ("jävla-fanbot",)),
        ("över.bot2*", ("över.bot2",)),
    ],
)
def test_tokens_of_name(name, tokens):
    assert tokens_of_name(name) == tokens


CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/126.0.0.0 Safari/537.36 Edg/126.0.0.0"
)


@pytest.mark.parametrize(
    ("header", "tokens"),
    [
        ("Scrapy/2.19.0 (+https://scrapy.org)", ("Scrapy",)),
        (b"Scrapy/2.19.0 (+https://scrapy.org)", ("Scrapy",)),
        ("MyBot/1.0 libfoo/2", ("MyBot", "libfoo")),
        ("MyBot/1.0 (see also: HelperBot/3)", ("MyBot", "HelperBot")),
        ("MyBot/1.0 mybot/2.0", ("MyBot",)),
        (
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            ("Googlebot",),
        ),
        (CHROME, ()),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0", ()),
        ("Mozilla/5.0 (compatible; a.b.example/2 www.x.com/3 me@x.com/4)", ("a.b.example",)),
        ("Mozilla/5.0 (compatible; mybot; +https://my.bot)", ("mybot",)),
        ("Mozilla/5.0 (compatible; my.bot2 +https://my.bot)", ("my.bot2",)),
        ("Mozilla/5.0 (compatible; Speedy Spider; https://a.example)", ("Speedy",)),
        ("Mozilla/5.0 (compatible; mybot; helper; other/2)", ("mybot", "other")),
        ("Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.1; Trident/5.0; mybot)", ()),
        ("Mozilla/5.0 (compatible; Intel Mac OS X 10_15; mybot)", ()),
        ("Mozilla/5.0 (compatible; my.bot/about; Linux)", ()),
        ("MyBot/1 (Linux/5.4; Android/9)", ("MyBot",)),
        ("Mozilla/5.0 (compatible; +https://my.bot)", ()),
        ("Mozilla/5.0 (compatible; ; ) (compatible) (incompatible; mybot)", ()),
        ("https://example.com/bot", ()),
        ("Mail.RU_Bot/2.0", ("Mail.RU_Bot",)),
        ("a (b (c/1) d/2) e", ("a", "e", "c", "d")),
        ("a) b (c/1", ("a", "b", "c")),
        ("", ()),
        ("böt/1".encode(), ("böt",)),
        ("Mozilla/5.0 (compatible; böt; bäm/2)", ("böt", "bäm")),
        ("mybot/1 \N{EN DASH} ein Crawler", ("mybot", "ein", "Crawler")),
        (b"b\xf6t/1", ("böt",)),
        (b"\xa0\xa9", ()),
    ],
)
def test_tokens_of_header(header, tokens):
    assert tokens_of_header(header) == tokens
