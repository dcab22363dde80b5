"""A robots.txt that comes as HTML: wrapped by a browser, or a page of its own."""

import gzip
import logging

import pytest

from tests.crawling.crawl import crawl
from tests.crawling.web import answer

DAY = 86_400
RULES = "User-agent: *\nDisallow: /private?a&amp;b\n"
START = '<html><head><meta name="color-scheme" content="light dark"></head><body><pre>'
WRAPPED = f"{START}{RULES}</pre></body></html>\n"


def html(body):
    return answer(200, body, headers={"Content-Type": "text/html"})


async def test_the_first_group_of_a_wrapped_text_is_obeyed(web):
    site = web.site(html(WRAPPED))
    result = await crawl(site.url("/private?a&b"), site.url("/public"))
    assert result.dropped == {site.url("/private?a&b"): "rule"}
    assert site.targets == ["/public"]
    lines = [line for line in result.messages() if "HTML" in line]
    wrapped = "is wrapped in the HTML of a browser, which is removed"
    assert lines == [f"robots.txt of {site.url('')} {wrapped}"]
    assert result.messages(logging.WARNING) == []


@pytest.mark.spec("F-13")
async def test_what_comes_before_the_cut_of_a_wrapped_text_holds(web):
    lines = "".join(f"Disallow: /{i:05}\n" for i in range(50_000))
    site = web.site(html(f"{START}{RULES}{lines}</pre></body></html>"))
    urls = [site.url(path) for path in ("/00000", "/private?a&b", "/49999")]
    assert sorted((await crawl(*urls)).dropped) == urls[:2]
    assert site.targets == ["/49999"]


@pytest.mark.spec("F-1")
async def test_another_html_page_is_read_line_by_line_with_one_warning(web, clock):
    page = "\n<!DOCTYPE html><html><body>\nUser-agent: *\nDisallow: /private\n</body></html>"
    sites = [web.site(html(page)), web.site(answer(200, page))]
    first, second, third = (
        [site.url(path) for site in sites] for path in ("/private", "/private/2", "/public")
    )
    phases = [clock.later(2 * DAY, *urls) for urls in (second, third)]
    result = await crawl(*first, phases=phases)
    assert [len(site.robots_requests) for site in sites] == [3, 3]
    assert [site.targets for site in sites] == [["/public"]] * 2
    warned = [line for line in result.messages(logging.WARNING) if "HTML page" in line]
    says = "is an HTML page: most likely it contains no rules; if it does, they are obeyed"
    assert sorted(warned) == sorted(f"robots.txt of {site.url('')} {says}" for site in sites)


NO_LINES = {
    "gzip": (gzip.compress(RULES.encode(), mtime=0), r"b'\x1f\x8b\x08\x00"),
    "UTF-16": (RULES.encode("utf-16-le"), r"b'U\x00s\x00e\x00r\x00"),
    "UTF-16, the other": (RULES.encode("utf-16-be"), r"b'\x00U\x00s\x00e\x00r"),
    "JSON": (b'{"message": "not found"}', 'b\'{"message": "not'),
    "words": (b"404: not found\nno such file", "b'404: not found\\nno"),
    "XML": (b"<Error><Code>NoSuchKey</Code></Error>", "b'<Error><Code>NoSuch"),
}
WITHOUT_RULES = {
    "empty": b"",
    "blanks": b" \r\n\r\n\t",
    "comments": b"# nothing: to say\n  # but that\n",
    "a sitemap": b"Sitemap: http://a.example/\n",
    "a license": b"License: http://a.example/\n",
    "a delay of nobody": b"crawl-delay 10",
}


@pytest.mark.spec("L-3")
async def test_a_text_without_one_line_that_can_be_read_is_told(web):
    sites = {name: web.site(answer(200, body)) for name, (body, _) in NO_LINES.items()}
    others = [web.site(answer(200, body)) for body in WITHOUT_RULES.values()]
    urls = [site.url("/private") for site in (*sites.values(), *others)]
    result = await crawl(*urls)
    assert sorted(result.fetched) == sorted(urls)
    warned = result.messages(logging.WARNING)
    assert len(warned) == len(NO_LINES)
    for name, (_, begins) in NO_LINES.items():
        says = "has no line that can be read, and so no rules: it begins with "
        line = f"robots.txt of {sites[name].url('')} {says}{begins}"
        assert [each for each in warned if each.startswith(line)], (name, warned)
