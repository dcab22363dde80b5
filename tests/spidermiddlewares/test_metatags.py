"""Meta tags and X-Robots-Tag in crawls (SPEC R-1 to R-4)."""

import logging

import pytest
import scrapy
from scrapy.linkextractors import LinkExtractor

from tests.crawling.crawl import ListSpider, crawl
from tests.crawling.web import answer, page
from tests.spidermiddlewares.items import Declared, Frozen
from tests.test_signals import Ear


def meta(content, name="robots"):
    """A robots meta tag, with the links that the spiders of this module follow."""
    links = "".join(f'<link rel=next href="?{query}">' for query in ("from", "1", "2"))
    return f'<META content="{content}" name="{name}">{links}'


PATHS = {
    "/robots.txt": [answer(404)],
    "/plain": page(),
    "/all": page(meta("all")),
    "/both": page(meta("noindex,nofollow")),
    "/nofollow": page(meta("nofollow")),
    "/quoted": page(meta("all"), X_Robots_Tag='"noindex; nofollow"'),
    "/header": page(meta("all"), X_Robots_Tag="none"),
    "/ours": page(meta("none", "testbot")),
    "/theirs": page(meta("none", "otherbot"), X_Robots_Tag="otherbot: none"),
    "/headers": page("<a href='?from'>", X_Robots_Tag="nofollow", x_robots_tag="testbot: noindex"),
}


class TaggedSpider(ListSpider):
    def parse(self, response):
        self.crawl.responses.append(response)
        if "from" in response.url:
            return
        yield scrapy.Request(f"{response.url}?from", callback=self.parse)
        yield {"url": response.url}
        yield Declared(response.url)


async def tagged(web, *paths, settings=None):
    site = web.site(paths=PATHS)
    result = await crawl(*map(site.url, paths), settings=settings, spidercls=TaggedSpider)
    followed = {t.partition("?")[0] for t in site.targets if t.endswith("?from")}

    def paths_of(urls):
        return {url.removeprefix(site.url("")) for url in urls}

    indexed = paths_of(item["url"] for item in result.items if isinstance(item, dict))
    declared = [item for item in result.items if isinstance(item, Declared)]
    return followed, indexed, paths_of(item.url for item in declared if item.robots_noindex), result


ALL = tuple(path for path in PATHS if path != "/robots.txt")
NOFOLLOW = {"/both", "/nofollow", "/quoted", "/header", "/ours", "/headers"}
NOINDEX = NOFOLLOW - {"/nofollow"}


@pytest.mark.spec("R-1", "R-2", "R-3")
async def test_by_default_links_are_dropped_and_items_marked(web):
    followed, indexed, marked, result = await tagged(web, *ALL)
    assert followed == set(ALL) - NOFOLLOW
    assert indexed == set(ALL)
    assert marked == NOINDEX
    assert result.stats["robotstxt/tags/nofollow"] == len(NOFOLLOW)
    assert result.stats["robotstxt/tags/noindex"] == 2 * len(NOINDEX)
    tags = {r.url.rpartition("/")[2]: r.meta.get("robots_tags") for r in result.responses}
    assert tags["both"] == {"noindex": True, "nofollow": True}
    assert tags["nofollow"] == {"noindex": False, "nofollow": True}
    assert tags["plain"] is None


NOFOLLOW_TAG = "<meta name=robots content=nofollow>"
HTML = "text/html"


def urls(*targets):
    """What a spider asks for if it makes these URLs itself."""
    return lambda response: [scrapy.Request(response.urljoin(target)) for target in targets]


def links(**options):
    """What a spider asks for by a link extractor."""
    return lambda response: [
        scrapy.Request(link.url) for link in LinkExtractor(**options).extract_links(response)
    ]


def joined(*hrefs):
    return lambda response: [response.follow(href) for href in hrefs]


def login(response):
    return [scrapy.Request(response.urljoin("/in"), method="POST", body="name=me")]


PAGES = [  # their type and body, what the spider asks for there, and whether it is sent
    # Links, however they are written and read.
    (HTML, "<a href='next'>", urls("/dir/next"), False),
    (HTML, "<a href='/next?b=2&amp;a=1'>", links(canonicalize=True), False),
    (HTML, "<a href=' /ne\txt '>", links(), False),
    (HTML, "<a href='http://[/'><a href='http://x:y/'><a href='/next'>", links(), False),
    (HTML, "<map><area href='/next'></map>", urls("/next"), False),
    (HTML, "<link rel=next href='/next'>", urls("/next"), False),
    (HTML, "<base href='/other/'><a href='next'>", urls("next"), False),
    (HTML, "<a href='/n\xe4chste?q=\xe4'>", joined("/n\xe4chste?q=\xe4"), False),
    (f"{HTML}; charset=latin-1", "<a href='/n?q=\xe4'>", links(), False),
    ("application/xhtml+xml", "<html><body><a href='/next'/></body></html>", links(), False),
    # What is asked for otherwise.
    (HTML, "<base href='/other/'><a href='next'>", urls("/dir/next"), True),
    (HTML, "<a href='/next'>", urls("/next?page=2"), True),
    (HTML, "<iframe src='/next'></iframe><img src='/next'>", urls("/next"), True),
    (HTML, "<!-- <a href='/next'> -->", urls("/next"), True),
    (
        HTML,
        "<a href='/in'><form action='/in' method=post><input name=name></form>",
        login,
        True,
    ),
    (HTML, "<form action='/in'><input name=name></form>", urls("/in?name=me"), True),
    ("application/json", '{"next": "/next"}', urls("/next"), True),
]


@pytest.mark.spec("R-1")
async def test_only_links_of_an_html_page_are_not_followed(web):
    sites = []
    for content_type, body, _, _ in PAGES:
        headers = {"Content-Type": content_type, "X-Robots-Tag": "none"}
        site = web.site(answer(404), paths={"/dir/page": [answer(200, body, headers=headers)]})
        sites.append(site)
    asks = {site.url("/dir/page"): ask for site, (*_, ask, _) in zip(sites, PAGES, strict=True)}
    result = await crawl(*asks, then=lambda r: asks[r.url](r) if r.url in asks else ())
    assert result.messages(logging.WARNING) == []
    sent = [len(site.targets) == 2 for site in sites]
    told = [(*of_page[:2], is_sent) for of_page, is_sent in zip(PAGES, sent, strict=True)]
    assert told == [(kind, body, follows) for kind, body, _, follows in PAGES]
    assert result.stats["robotstxt/tags/nofollow"] == sent.count(False)


@pytest.mark.parametrize("hrefs", [range(20_001), ["?" + "a=1&" * 2**18]], ids=["many", "long"])
async def test_a_page_with_more_links_than_are_read_is_taken_to_link_to_everything(web, hrefs):
    body = NOFOLLOW_TAG + "".join(f"<a href={href}>" for href in hrefs)
    site = web.site(answer(404), paths={"/page": page(body)})
    await crawl(site.url("/page"), then=urls("/elsewhere"))
    assert site.targets == ["/page"]


@pytest.mark.parametrize("dry_run", [False, True])
async def test_what_is_dropped_and_what_would_be_is_told(web, dry_run):
    page = web.site(paths=PATHS).url("/both")
    ear = Ear("robotstxt_forbidden")
    settings = {"REP_DRY_RUN": dry_run, "REP_META_TAGS": "drop"}
    result = await crawl(page, spidercls=TaggedSpider, settings=settings, opened=ear.listen)
    assert (f"{page}?from" in result.fetched) == dry_run
    assert len(result.items) == (2 if dry_run else 0)
    stats = {name: n for name, n in result.stats.items() if "forbidden" in name}
    prefix = "robotstxt/dry_run/" if dry_run else "robotstxt/"
    names = ("forbidden", "forbidden_reason_count/nofollow")
    assert stats == {f"{prefix}{name}": 1 for name in names}
    ((_, what),) = ear.heard
    assert (what["request"].url, what["dropped"]) == (f"{page}?from", not dry_run)
    lines = result.messages(logging.INFO)
    tags = "nofollow in robots meta tag or X-Robots-Tag"
    if dry_run:
        assert f"Dry run, would drop <GET {page}?from>: {tags} of {page}" in lines
    else:
        assert what["request"].meta["robotstxt"]["reason"] == "nofollow"
        assert f"Ignoring link ({tags} of {page}): <GET {page}?from>" in lines
        assert f"Links ignored ({tags}): 1" in lines
        assert not [line for line in lines if "robots.txt: " in line and "nofollow" in line]
        assert not [line for line in lines if line.startswith("Requests dropped")]
    ends = [line for line in lines if line.endswith(f" item (noindex): {page!r}")]
    assert {line.partition(" item")[0] for line in ends} == {
        "Dry run, would drop" if dry_run else "Dropped"
    }
    assert len(ends) == 2


@pytest.mark.spec("R-4")
@pytest.mark.parametrize(
    "settings",
    [
        {"REP_META_TAGS": False},
        {"ROBOTSTXT_OBEY": False},
        {"REP_DRY_RUN": True, "REP_META_TAGS": "drop"},
    ],
)
async def test_advice_that_can_be_left_alone(web, settings):
    followed, indexed, marked, _ = await tagged(web, *ALL, settings=settings)
    assert followed == indexed == set(ALL)
    assert marked == set()


async def test_a_request_that_does_not_obey_and_the_page_itself_are_sent(web):
    site = web.site(paths=PATHS)
    disobedient = {"dont_obey_robotstxt": True}

    class Spider(TaggedSpider):
        def parse(self, response):
            if response.meta.get("again"):
                return
            again = {"again": True}
            yield response.request.replace(dont_filter=True, meta=response.meta | again)
            yield scrapy.Request(f"{response.url}?1", callback=self.parse, meta=again | disobedient)
            yield scrapy.Request(f"{response.url}?2", callback=self.parse, meta=again)

    obeying = scrapy.Request(f"{site.url('/both')}#section")  # the response's URL is without it
    await crawl(obeying, scrapy.Request(site.url("/header"), meta=disobedient), spidercls=Spider)
    assert sorted(site.targets) == [
        "/both", "/both", "/both?1", "/header", "/header", "/header?1", "/header?2",
    ]  # fmt: skip


@pytest.mark.parametrize("item", [object(), Frozen(), 5])
async def test_an_item_that_can_not_be_marked_loses_nothing_of_what_comes_after_it(web, item):
    site = web.site(paths=PATHS | {"/noindex": page(meta("noindex"))})

    class Spider(ListSpider):
        def parse(self, response):
            if response.url.endswith("noindex"):
                yield item
                yield Declared(response.url)
                yield scrapy.Request(site.url("/next"), callback=self.parse)

    result = await crawl(site.url("/noindex"), spidercls=Spider)
    assert result.items == [item, Declared(site.url("/noindex"), robots_noindex=True)]
    assert site.targets == ["/noindex", "/next"]
    assert bool(result.messages(logging.ERROR)) == isinstance(item, Frozen)


# All that Python calls an encoding; a site may name any.
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("unicode_escape", r"<meta name=robots content=all>\ud800"),
        ("undefined", "<meta name=robots content=all>"),
        ("hex", "<meta name=robots content=all>"),
    ],
)
async def test_a_page_whose_elements_can_not_be_read_is_taken_to_say_none(web, encoding, body):
    kind = {"Content-Type": f"text/html; charset={encoding}"}
    site = web.site(answer(404), paths={"/page": [answer(200, body, headers=kind)]})
    page = site.url("/page")
    # MetaRefreshMiddleware reads pages, too, and loses those that have no text.
    settings = {"REP_PURPOSES": ["ai-training", "search"], "METAREFRESH_ENABLED": False}
    result = await crawl(page, spidercls=TaggedSpider, settings=settings)
    assert result.fetched == [page]
    assert site.targets == ["/page"]
    results = {"ai-training": "disallow", "search": "unknown"}
    assert result.items == [
        {"url": page},
        Declared(page, robots_noindex=True, robots_usage=results),
    ]
    meta = result.responses[0].meta
    assert meta["robots_tags"] == {"noindex": True, "nofollow": True}
    assert meta["robotstxt"]["usage"]["results"] == results
    assert result.stats["robotstxt/tags/unreadable"] == 1
    (line,) = result.messages(logging.WARNING)
    assert line.startswith(f"The meta elements of {page!r} can't be read (")
    assert not [record for record in result.records if record.levelno >= logging.ERROR]
