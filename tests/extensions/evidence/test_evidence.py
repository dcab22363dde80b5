"""Evidence: each page, each hop and each drop is told truly."""

import hashlib
import json

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse
from twisted.internet.defer import Deferred, DeferredList

from tests.crawling.crawl import crawl, releasing_when
from tests.crawling.process import CrawlProcess
from tests.crawling.web import PAGE, answer, held, redirect, robots
from tests.downloadermiddlewares.test_modes import MODES
from tests.downloadermiddlewares.test_robotstxt_fetch import Follows
from tests.extensions.evidence.evidence import is_sound, lines, of, records

RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n"
USAGE = "User-agent: *\nContent-Usage: train-ai=y\nContent-Usage: /no train-ai=n\n"
SHA256 = hashlib.sha256(RULES.encode()).hexdigest()
AS_SPIDERS_DO = {"handle_httpstatus_all": False}


class Answers:
    """Has a response of its own, as caches and renderers do."""

    def process_request(self, request):
        if request.url.endswith("/mine"):
            return HtmlResponse(request.url, body=PAGE.encode())
        return None


async def test_a_page_and_a_drop_have_a_line_with_all_that_decided(web, path):
    site = web.site(robots(RULES))
    settings = {"REP_EVIDENCE": path}
    result = await crawl(site.url("/private"), site.url("/private/open"), settings=settings)
    (drop,) = of(path, site.url("/private"))
    (page,) = of(path, site.url("/private/open"))
    for line, *expected in (
        (drop, "drop", "disallowed", "Disallow: /private", 2, None, None, None),
        (page, "page", "allowed", "Allow: /private/open", 3, "download", 200, "testbot/1.0"),
    ):
        names = ("kind", "decision", "rule", "line", "source", "status", "user_agent")
        assert [line[name] for name in names] == expected
        assert (line["reason"], line["method"]) == ("rule", "GET")
        assert (line["tokens"], line["hops"], line["exemption"]) == (["testbot"], [], None)
        file = line["robotstxt"]
        assert (file["url"], file["outcome"]) == (site.url("/robots.txt"), "available")
        assert (file["sha256"], file["size"]) == (SHA256, len(RULES))
        assert file["fetched"] == file["asked"] <= line["decided"] <= line["time"]
        assert line["age"] >= 0
    kinds = [line["kind"] for line in lines(path)]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert kinds.count("robotstxt") == 1
    assert result.stats["robotstxt/evidence/written"] == len(kinds) == 5
    assert "robotstxt/evidence/lost" not in result.stats


async def test_a_text_is_kept_once_by_its_hash(web, tmp_path):
    sites = [web.site(robots(RULES), host=host) for host in ("127.0.0.1", "127.0.0.2")]
    path = tmp_path / "evidence"
    await crawl(*(site.url("/") for site in sites), settings={"REP_EVIDENCE": path})
    texts = [each for each in path.rglob("*") if each.is_file() and each.suffix != ".jsonl"]
    assert texts == [path / "texts" / SHA256[:2] / SHA256]
    assert texts[0].read_text() == RULES


async def test_decisions_of_a_warc_refer_to_the_response_that_they_are_by(web, tmp_path):
    site, missing = web.site(robots(RULES)), web.site(answer(404))
    path = tmp_path / "evidence.warc.gz"
    await crawl(site.url("/"), missing.url("/"), settings={"REP_EVIDENCE": path})
    assert is_sound(path)
    found = records(path)
    assert found[0][1] == "warcinfo"
    answers = {identifier: body for identifier, kind, _, body in found if kind == "response"}
    assert sorted(answers.values()) == [b"", RULES.encode()]
    referring = {
        json.loads(body)["url"]: answers[refers_to]
        for _, kind, refers_to, body in found
        if kind == "metadata" and json.loads(body)["kind"] == "page"
    }
    assert referring == {site.url("/"): RULES.encode(), missing.url("/"): b""}


async def test_each_hop_and_each_try_has_a_line(web, path):
    paths = {
        "/old": [redirect("/new")],
        "/flaky": [answer(503), answer(200, PAGE)],
        "/gone": [redirect("/private")],
        "/broken": [[["close"]]],
    }
    site = web.site(robots(RULES), paths=paths)
    requests = [Request(site.url(each), meta=AS_SPIDERS_DO) for each in paths]
    await crawl(*requests, settings={"REP_EVIDENCE": path, "RETRY_TIMES": 1})
    (old,), (new,) = of(path, site.url("/old")), of(path, site.url("/new"))
    assert (old["status"], old["hops"]) == (301, [])
    assert (new["status"], new["hops"]) == (200, [site.url("/old")])
    assert [line["status"] for line in of(path, site.url("/flaky"))] == [503, 200]
    assert [line["kind"] for line in of(path, site.url("/gone"))] == ["page"]
    (private,) = of(path, site.url("/private"))
    assert (private["kind"], private["hops"]) == ("drop", [site.url("/gone")])
    broken = of(path, site.url("/broken"))
    assert [(line["kind"], line["source"]) for line in broken] == [("failed", "download")] * 2


async def test_where_a_handler_went_by_itself_is_told(web, path):
    paths = {"/a": [redirect("/b")], "/c": [redirect("/private")]}
    site = web.site(robots(RULES), paths=paths)
    settings = {"REP_EVIDENCE": path, "DOWNLOAD_HANDLERS": {"http": Follows}}
    await crawl(site.url("/a"), site.url("/c"), settings=settings)
    (hop,) = of(path, site.url("/b"))
    assert (hop["kind"], hop["decision"], hop["hops"]) == ("page", "allowed", [site.url("/a")])
    (dropped,) = of(path, site.url("/private"))
    assert (dropped["kind"], dropped["line"]) == ("drop", 2)
    assert dropped["hops"] == [site.url("/c")]
    assert hop["source"] == dropped["source"] == "handler"


async def test_what_was_not_sent_is_told(web, path, tmp_path):
    site = web.site(robots(RULES))
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "DOWNLOADER_MIDDLEWARES": {Answers: 800},
        "REP_EVIDENCE": path,
    }
    for _ in range(2):
        await crawl(site.url("/"), site.url("/mine"), settings=settings)
    first, second = of(path, site.url("/"))
    assert (first["source"], first["user_agent"]) == ("download", "testbot/1.0")
    assert (second["source"], second["user_agent"]) == ("cache", None)
    assert second["decision"] == "allowed"
    assert {line["source"] for line in of(path, site.url("/mine"))} == {"component"}
    assert site.targets == ["/"]


class Rewrites:
    """Leads requests to another page."""

    def process_request(self, request):
        request._set_url(request.url.replace("/rewritten", "/private"))


async def test_what_is_dropped_or_given_back_on_the_wire_has_not_failed(web, path):
    refused = answer(429, headers={"Retry-After": "3"})
    site = web.site(robots(RULES), paths={"/refuses": [refused, answer(200, PAGE)]})
    settings = {
        "DOWNLOADER_MIDDLEWARES": {Rewrites: 800},
        "REP_EVIDENCE": path,
        # They wait in the slot when the pause begins.
        "DOWNLOAD_DELAY": 0.3,
        "DOWNLOAD_DELAY_JITTER": 0,
    }
    pages = [site.url(f"/{n}") for n in range(3)]
    urls = [site.url("/rewritten"), site.url("/refuses"), *pages]
    result = await crawl(*urls, settings=settings)
    (dropped,) = of(path, site.url("/private"))
    assert dropped["kind"] == "drop"
    assert result.stats["robotstxt/returned_to_scheduler"] > 0
    for url in pages:
        (line,) = of(path, url)
        assert line["kind"] == "page"


async def test_exemptions_overrides_and_dry_runs_are_told(web, path, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("User-agent: *\nDisallow: /mine\n")
    digest = hashlib.sha256(rules.read_bytes()).hexdigest()
    more = {"file": {"path": str(rules)}, "agent": {"agent": "otherbot"}}
    decisions = {
        "ignore": "allowed",
        "disallow": "disallowed",
        "file": "disallowed",
        "agent": "allowed",
    }
    sites, overrides = {}, []
    for number, policy in enumerate(decisions, 2):
        sites[policy] = site = web.site(robots(RULES), host=f"127.0.0.{number}")
        entry = {"host": site.host, "policy": policy, "reason": "agreed"}
        overrides.append({**entry, **more.get(policy, {})})
    site = web.site(robots(RULES))
    exempt = Request(site.url("/private"), meta={"dont_obey_robotstxt": True})
    urls = [exempt, "data:,x", site.url("/robots.txt"), *(s.url("/mine") for s in sites.values())]
    settings = {"REP_EVIDENCE": path, "REP_OVERRIDES": overrides}
    # The file counts as it was when the crawl began.
    await crawl(*urls, settings=settings, opened=lambda _: rules.write_text(""))
    (line,) = of(path, site.url("/private"))
    assert (line["decision"], line["exemption"]) == (None, "dont_obey_robotstxt")
    assert (line["kind"], line["robotstxt"]) == ("page", None)
    assert of(path, "data:,x")[0]["exemption"] == "scheme"
    assert of(path, site.url("/robots.txt"))[0]["reason"] == "robotstxt"
    told = {policy: of(path, site.url("/mine"))[0] for policy, site in sites.items()}
    assert {policy: line["decision"] for policy, line in told.items()} == decisions
    for policy, line in told.items():
        assert (line["override"]["policy"], line["override"]["reason"]) == (policy, "agreed")
    file = told["file"]["robotstxt"]
    assert (file["outcome"], file["sha256"], told["file"]["line"]) == ("override", digest, 2)
    assert told["agent"]["tokens"] == ["otherbot"]
    assert told["agent"]["robotstxt"]["sha256"] == SHA256

    await crawl(site.url("/private/x"), settings={"REP_EVIDENCE": path, "REP_DRY_RUN": True})
    (line,) = of(path, site.url("/private/x"))
    assert (line["kind"], line["decision"], line["dry_run"]) == ("page", "disallowed", True)


async def test_an_origin_that_nobody_knows_is_told(web, path):
    failing, proxy = web.site(answer(503)), web.site(answer(407))
    behind = Request("http://example.com/", meta={"proxy": proxy.url("")})
    bad = Request(failing.url("/").replace("127.0.0.1", "127.0.0.1%00"))
    await crawl(failing.url("/"), behind, bad, settings={"REP_EVIDENCE": path})
    (line,) = of(path, failing.url("/"))
    assert (line["kind"], line["reason"]) == ("drop", "unreachable")
    assert (line["robotstxt"]["status"], line["robotstxt"]["sha256"]) == (503, None)
    (line,) = of(path, behind.url)
    assert (line["reason"], line["robotstxt"]["outcome"]) == ("unreachable", "unreachable")
    assert [line["reason"] for line in of(path, bad.url)] == ["no-origin"]


async def test_a_stale_copy_is_the_text_that_is_told(web, path, clock, tmp_path):
    site = web.site(robots(RULES), answer(503))
    settings = {
        "REP_EVIDENCE": path,
        "REP_STORE": f"sqlite:///{tmp_path}/robots.sqlite",
        "REP_UNREACHABLE_STALE_AFTER": 0,
    }
    await crawl(site.url("/a"), settings=settings)
    clock.advance(100_000)
    await crawl(site.url("/b"), settings=settings)
    (line,) = of(path, site.url("/b"))
    file = line["robotstxt"]
    assert (file["outcome"], file["status"], file["sha256"]) == ("unreachable", 503, SHA256)
    assert file["fetched"] < file["asked"]
    assert 100_000 <= line["age"] < 200_000


async def test_what_another_crawl_has_looked_up_is_told(web, tmp_path):
    site = web.site(held(robots(RULES)))
    paths = [tmp_path / name for name in ("one", "two")]

    def then(response):
        return [] if site.targets[2:] else [site.url("/again")]

    options = {"then": then, "meanwhile": releasing_when(lambda _: site.robots_requests, site)}
    crawls = [crawl(site.url("/"), settings={"REP_EVIDENCE": path}, **options) for path in paths]
    await DeferredList([Deferred.fromCoroutine(each) for each in crawls])
    told = [line for path in paths for line in lines(path) if line["kind"] == "page"]
    assert {line["robotstxt"]["sha256"] for line in told} == {SHA256}
    assert len(site.robots_requests) == 1
    for path in paths:
        assert (path / "texts" / SHA256[:2] / SHA256).read_text() == RULES


async def test_what_is_known_of_use_is_told(web, path):
    paths = {"/header": [answer(200, PAGE, headers={"Content-Usage": "train-ai=n"})]}
    site = web.site(robots(USAGE), paths=paths)
    settings = {"REP_PURPOSES": "ai-training", "REP_USAGE_ACTION": "drop", "REP_EVIDENCE": path}
    await crawl(*map(site.url, ("/", "/no", "/header")), settings=settings)
    (page,), (drop,) = of(path, site.url("/")), of(path, site.url("/no"))
    assert (page["kind"], page["usage"]["results"]) == ("page", {"ai-training": "allow"})
    assert [said["raw"] for said in page["usage"]["statements"]] == ["train-ai=y"]
    assert (drop["kind"], drop["reason"]) == ("drop", "usage")
    assert drop["usage"]["results"] == {"ai-training": "disallow"}
    assert [said["line"] for said in drop["usage"]["statements"]] == [3]
    # What a header says is known after the page has its line.
    (header,) = of(path, site.url("/header"))
    assert header["usage"]["results"] == {"ai-training": "allow"}
    (later,) = [line for line in lines(path) if line["kind"] == "usage"]
    assert later["url"] == site.url("/header")
    assert later["usage"]["results"] == {"ai-training": "disallow"}
    assert [said["place"] for said in later["usage"]["statements"]] == ["robots.txt", "header"]


async def test_what_a_tdmrep_json_came_to_is_told(web, path):
    body = '[{"location": "/no", "tdm-reservation": 1}]'
    site = web.site(robots(RULES), paths={"/.well-known/tdmrep.json": [answer(200, body)]})
    settings = {
        "REP_EVIDENCE": path,
        "REP_PURPOSES": "tdm",
        "REP_USAGE_ACTION": "drop",
        "REP_USAGE_SOURCES": "tdmrep",
    }
    await crawl(site.url("/"), site.url("/no"), settings=settings)
    (told,) = [line for line in lines(path) if line["kind"] == "tdmrep"]
    sha256 = hashlib.sha256(body.encode()).hexdigest()
    assert (told["source"], told["tdmrep"]["sha256"]) == ("fetch", sha256)
    assert told["tdmrep"]["url"] == site.url("/.well-known/tdmrep.json")
    if path.is_dir():
        assert (path / "texts" / sha256[:2] / sha256).read_text() == body
    else:
        assert is_sound(path)
        assert body.encode() in [each for _, kind, _, each in records(path) if kind == "response"]
    (drop,) = of(path, site.url("/no"))
    assert [said["place"] for said in drop["usage"]["statements"]] == ["tdmrep.json"]
    assert drop["robotstxt"]["url"] == site.url("/robots.txt")


async def test_no_credentials_are_written(web, path):
    site = web.site(robots(RULES))
    store = f"sqlite:///{path.parent}/robots.sqlite"
    url = site.url("/private").replace("//", "//user:secret@")
    await crawl(url, settings={"REP_EVIDENCE": path, "REP_STORE": store})
    assert len(of(path, site.url("/private"))) == 1
    assert "secret" not in json.dumps(lines(path))


async def test_equal_settings_have_an_equal_digest(web, tmp_path):
    site = web.site(robots(RULES))
    digests = []
    for name, delay in (("a", 9), ("b", 9), ("c", 0)):
        settings = {"REP_EVIDENCE": tmp_path / name, "REP_CRAWL_DELAY_MAX": delay}
        await crawl(site.url("/"), settings=settings)
        digests += {line["settings"] for line in lines(tmp_path / name)}
    assert digests[0] == digests[1] != digests[2]
    assert len(digests) == 3


@pytest.mark.parametrize("mode", MODES)
def test_evidence_is_written_in_each_mode(web, path, mode):
    site = web.site(robots(RULES))
    CrawlProcess(mode, [site.url("/"), site.url("/private")], REP_EVIDENCE=str(path)).result()
    kinds = sorted(line["kind"] for line in lines(path))
    assert kinds == ["drop", "end", "page", "robotstxt", "start"]
