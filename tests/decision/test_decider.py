"""What is decided of a request: by an override, by tokens, under every spelling, by an entry."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from scrapy_rep.cache.cache import LookupResult
from scrapy_rep.decision.spellings import other_spellings
from scrapy_rep.protocol.origin import origin_of, target_of
from scrapy_rep.protocol.parser import RobotsTxt
from scrapy_rep.protocol.verdict import Reason, Verdict
from tests.admission.parts import Parts
from tests.made_up_network import record_of
from tests.made_up_time import MadeUpTime
from tests.scheduler.queues import FakeCrawler
from tests.waiting import settle

pytestmark = pytest.mark.event_loop

HOST = "site.example"
SITE = f"http://{HOST}"
ORIGIN = origin_of(SITE)
RULES = "User-agent: *\nDisallow: /private\n\nUser-agent: partner\nDisallow: /partner\n"
WHY = "we agreed on it"


class Scene(Parts):
    def __init__(self, *entries, **more):
        settings = {"USER_AGENT": "testbot/1.0", "REP_OVERRIDES": list(entries), **more}
        super().__init__(FakeCrawler(**settings), MadeUpTime())

    def outcome(self, text):
        """How a fetch ends: with the file ``text``, or in a state without rules."""
        body = None if text in {"all", "none"} else text.encode()
        return self.network.outcome(ORIGIN, body, unreachable=text == "none")

    def knows(self, text, *token_lists):
        record = record_of(ORIGIN, self.outcome(text))
        for tokens in token_lists or [("testbot",)]:
            self.cache.put_record(ORIGIN, record, tokens)

    def will_find(self, text):
        self.network.outcomes[ORIGIN] = self.outcome(text)

    def known(self, path="/", **more):
        return self.decider.known_decision(page(path, **more))


def page(path="/", **more):
    return Request(f"{SITE}{path}", **more)


def verbatim(url):
    """A request whose URL is left as it is, in every version of Scrapy."""
    request = Request(f"{SITE}/", meta={"verbatim_url": True})
    request._url = url
    return request


def run(coroutine):
    """Run to its end what has nothing to wait for but the event loop."""
    results = []
    deferred_from_coro(coroutine).addBoth(results.append)
    settle()
    (result,) = results
    if isinstance(result, Failure):
        result.raiseException()
    return result


def override(policy, host=HOST, **more):
    return {"host": host, "policy": policy, "reason": WHY, **more}


def file_with(folder, rules):
    path = folder / "rules.txt"
    path.write_text(rules)
    return str(path)


# By the rules.


def test_what_is_not_known_has_no_verdict_and_nothing_is_asked():
    scene = Scene()
    assert scene.known("/private") == (ORIGIN, "/private", ("testbot",), None, None, None, None)
    assert scene.known("/robots.txt?x").verdict is scene.known("/a/robots.txt").verdict is None
    assert scene.network.fetched == []


@pytest.mark.parametrize("path", ["/private", "/%70rivate", "/public/../private", "/private?"])
def test_rules_of_other_tokens_are_none(path):
    scene = Scene()
    scene.knows(RULES, ("other",))
    decision = scene.known(path)
    assert decision.verdict is None
    scene.will_find(RULES)
    assert not run(scene.decider.decision(page(path), decision)).verdict.allowed


@pytest.mark.parametrize(
    "url",
    ["data:,x", "about:blank", "file:///private", "s3://bucket/private", "ws://site.example/private",
     "httpx://site.example/", "//site.example/private", "/private", ""],
)  # fmt: skip
def test_no_robotstxt_governs_other_schemes(url):
    scene = Scene(override("disallow"))
    scene.knows("User-agent: *\nDisallow: /\n")
    assert scene.decider.known_decision(verbatim(url)) is None


@pytest.mark.parametrize(
    "url",
    ["http://", "http:///private", "http://a b/", "http://site.example:99999/", "http:site.example/",
     "https://site%2eexample/", "ftp://[::1/", "http://site.example\\@other.example/",
     " HTTP://site.example:x/"],
)  # fmt: skip
def test_a_url_without_an_origin_is_not_sent(url):
    scene = Scene(override("ignore", "." + HOST))
    decision = scene.decider.known_decision(verbatim(url))
    assert decision.origin is None
    assert decision.verdict == Verdict(allowed=False, reason=Reason.NO_ORIGIN)
    assert scene.network.fetched == []
    with pytest.raises(LookupError, match="has no origin"):
        run(scene.decider.decision(verbatim(url), decision))
    assert scene.network.fetched == []


@pytest.mark.spec("S-9")
@pytest.mark.rfc9309("2.2.2")
@pytest.mark.parametrize("path", ["/robots.txt", "/robot%73.txt"])
@pytest.mark.parametrize("knows", [None, "none", "User-agent: *\nDisallow: /\n"])
def test_robotstxt_itself_is_allowed_known_or_not(path, knows):
    scene = Scene()
    if knows:
        scene.knows(knows)
    decision = scene.decider.known_decision(verbatim(f"{SITE}{path}"))
    assert decision.verdict == Verdict(allowed=True, reason=Reason.ROBOTSTXT)
    assert scene.network.fetched == []


# By which tokens.


@pytest.mark.parametrize(
    ("settings", "agent", "tokens"),
    [
        ({}, {}, ("testbot",)),
        ({}, {"User-Agent": "partner/2"}, ("partner",)),
        # The setting comes before the header.
        ({"ROBOTSTXT_USER_AGENT": ["partner", "testbot"]}, {}, ("partner", "testbot")),
        (
            {"ROBOTSTXT_USER_AGENT": ["partner", "testbot"]},
            {"User-Agent": "testbot/2"},
            ("partner", "testbot"),
        ),
    ],
)
def test_by_which_tokens_a_request_is_decided(settings, agent, tokens):
    scene = Scene(**settings)
    scene.knows(RULES, ("testbot",), tokens)
    decision = scene.known("/partner", headers=agent)
    assert (decision.tokens, decision.verdict.allowed) == (tokens, "partner" not in tokens)


@pytest.mark.parametrize(
    ("entries", "tokens"),
    [((), ("partner",)), ((override("agent", agent="testbot"),), ("testbot",))],
)
@pytest.mark.parametrize("by", ["decision", "start_lookup"])
def test_what_is_looked_up_is_asked_by_the_tokens_that_decide(entries, tokens, by):
    scene = Scene(*entries)
    scene.will_find(RULES)
    request = page("/partner", headers={"User-Agent": "partner/1"})
    found = []
    if by == "decision":
        found.append(run(scene.decider.decision(request, scene.decider.known_decision(request))))
    else:
        scene.decider.start_lookup(request, found.append)
        settle()
    assert found[0] is not None
    assert scene.network.pages == [request]
    assert scene.cache.known_entry(ORIGIN).verdict("/", tokens).allowed
    known = scene.decider.known_decision(request)
    assert known.verdict.allowed == (tokens != ("partner",))
    assert by == "start_lookup" or found == [known]


def test_no_rules_for_the_tokens_is_an_error_and_no_verdict():
    scene = Scene()
    scene.knows(RULES, ("other",))

    async def result_of_others(origin, tokens, page, *, stays):
        return LookupResult(scene.cache.known_entry(origin), None)

    scene.lookups.result = result_of_others
    with pytest.raises(LookupError, match=r"no rules of http://site\.example for \('testbot',\)"):
        run(scene.decider.decision(page(), scene.known()))


# By overrides.


@pytest.mark.parametrize(
    ("policy", "path", "allowed", "reason"),
    [
        ("ignore", "/private", True, Reason.OVERRIDE),
        ("ignore", "/robots.txt", True, Reason.ROBOTSTXT),
        ("disallow", "/", False, Reason.OVERRIDE),
        ("disallow", "/robots.txt", True, Reason.ROBOTSTXT),
        ("disallow", "/a/../robots.txt", False, Reason.OVERRIDE),
        ("file", "/private", True, Reason.NO_RULE),
        ("file", "/ours", False, Reason.RULE),
        ("file", "/robots.txt", True, Reason.ROBOTSTXT),
    ],
)
@pytest.mark.parametrize("knows", [None, "all", "none", RULES])
def test_an_override_comes_before_all_that_is_known(tmp_path, policy, path, allowed, reason, knows):
    more = {"path": file_with(tmp_path, "User-agent: *\nDisallow: /ours\n")}
    scene = Scene(override(policy, **(more if policy == "file" else {})))
    if knows:
        scene.knows(knows)
    decision = scene.known(path)
    assert decision.verdict[:2] == (allowed, reason)
    assert decision.override.policy == policy
    assert decision.entry is None
    assert scene.network.fetched == []


@pytest.mark.parametrize("policy", ["ignore", "disallow", "agent"])
def test_an_override_decides_until_its_time_is_over(policy):
    until = datetime.fromtimestamp(MadeUpTime().wall + 10, timezone.utc)
    more = {"agent": "partner"} if policy == "agent" else {}
    scene = Scene(override(policy, until=until, **more))
    scene.knows(RULES, ("testbot",), ("partner",))
    scene.time.advance(9.5)
    assert scene.known("/private").override.policy == policy
    assert scene.known("/private").verdict.allowed == (policy != "disallow")
    assert scene.decider.needs_robotstxt(ORIGIN) == (policy == "agent")
    scene.time.advance(0.5)
    decision = scene.known("/private")
    assert decision.override is None
    assert (decision.tokens, decision.verdict.reason) == (("testbot",), Reason.RULE)
    assert [entry.policy for entry in scene.overrides.expired] == [policy]
    assert scene.decider.needs_robotstxt(ORIGIN)
    assert scene.decider.override_of(ORIGIN) is None


@pytest.mark.parametrize(
    ("url", "meta", "governed"),
    [
        (f"{SITE}/", {}, True),
        (f"{SITE}/private", {"dont_obey_robotstxt": True}, False),
        (f"{SITE}/robots.txt", {}, False),
        (f"{SITE}/%72obots.txt", {}, False),
        (f"{SITE}/robots.txt?x", {}, True),
        ("http://ignored.example/", {}, False),
        ("http://agent.example/", {}, True),
        ("data:,x", {}, False),
        ("http://site.example:x/", {}, False),
    ],
)
def test_whose_robotstxt_governs(url, meta, governed):
    scene = Scene(
        override("ignore", "ignored.example"), override("agent", "agent.example", agent="x")
    )
    request = verbatim(url)
    request.meta.update(meta)
    assert scene.decider.origin_governing(request) == (origin_of(url) if governed else None)
    assert scene.network.fetched == []


# Under every spelling.

DOTS = ("/a/../private", "/./private", "/a/b/../../private/x", "/%2e/private", "/a/%2E%2E/private")


@pytest.mark.rfc3986("5.2.4")
@pytest.mark.parametrize("by", ["entry", "looked up", "file"])
@pytest.mark.parametrize("path", [*DOTS, "/%70rivate", "/pri%76ate", "//private", "/private;x"])
def test_a_disallowed_page_is_not_had_by_another_spelling(tmp_path, path, by):
    entries = [override("file", path=file_with(tmp_path, RULES))] if by == "file" else []
    scene = Scene(*entries)
    if by == "entry":
        scene.knows(RULES)
    scene.will_find(RULES)
    request = verbatim(f"{SITE}{path}")
    decision = scene.decider.known_decision(request)
    if by == "looked up":
        decision = run(scene.decider.decision(request, decision))
    assert (decision.verdict.allowed, decision.verdict.line) == (False, 2)
    # The spelling that decided is told.
    assert decision.target.startswith("/private")


def test_what_is_disallowed_as_it_stands_is_told_by_that_spelling():
    scene = Scene()
    scene.knows("User-agent: *\nDisallow: /a\nDisallow: /private\n")
    decision = scene.known("/a/../private")
    assert (decision.target, decision.verdict.line) == ("/a/../private", 2)


# However it is asked.

PIECES = ("/", "a", "b", "..", ".", "%2e", "%61", "%2F", "%3D", "%3d", "=", "?", "&", ";", "%3B",
          "%25", "%", "[", "]", "|", "+", "%2B", "@", ":", "é", "%C3%A9", "'", '"', "{", "robots.txt")  # fmt: skip
paths = st.lists(st.sampled_from(PIECES), max_size=8).map(lambda pieces: "/" + "".join(pieces))
patterns = st.lists(st.sampled_from((*PIECES, "*", "$")), max_size=5).map(
    lambda pieces: "/" + "".join(pieces)
)
rules = st.lists(st.tuples(st.sampled_from(("Allow", "Disallow")), patterns), max_size=6).map(
    lambda lines: "User-agent: *\n" + "".join(f"{name}: {value}\n" for name, value in lines)
)


@given(path=paths, rules=rules, is_verbatim=st.booleans())
def test_known_and_found_out_are_the_same(path, rules, is_verbatim):
    scene = Scene()
    scene.will_find(rules)
    url = f"{SITE}{path}"
    request = verbatim(url) if is_verbatim else Request(url)
    decision = scene.decider.known_decision(request)
    if decision.verdict is not None:
        assert target_of(request.url) == "/robots.txt"
        return
    found = run(scene.decider.decision(request, decision))
    assert scene.decider.known_decision(request) == found
    again = run(scene.decider.decision(request, found._replace(verdict=None)))
    assert again.verdict == found.verdict
    if found.verdict.allowed:
        # There is no other way to say so: every spelling is.
        spelled = other_spellings(request.url, found.target)
        judged = RobotsTxt.parse(rules.encode()).rules_for("testbot")
        assert all(judged.verdict_for(spelling).allowed for spelling in spelled)
