"""Usage preferences: the facts that PREFERENCES lists, point by point (U-1 to U-5)."""

import json

import pytest

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.limits import (
    MAX_META_ELEMENTS,
    MAX_TAG_TEXT,
    MAX_USAGE_BYTES,
    MAX_USAGE_URIS,
)
from scrapy_rep.protocol.usage import NO_USAGE_LINES, PURPOSES, Statement, Usage, judge
from scrapy_rep.protocol.usage.statement import REVISIONS

URL = "https://example.com"


def of(body, path="/x", *tokens):
    return RobotsTxt.parse(body).usage(URL + path, *(tokens or ("mybot",)))


def usage(*lines, path="/x"):
    return of("\n".join(("User-agent: *", *lines)).encode(), path)


def three(said):
    return tuple(said.result(purpose) for purpose in ("search", "ai-input", "ai-training"))


def letters(said):
    words = {"allow": "y", "disallow": "n"}
    labels = ("train-ai", "ai-use", "search")
    return {label: words[value] for label in labels if (value := said.value(label)) in words}


MERGED = (
    b"User-agent: mybot\nContent-Usage: train-ai=y\nDisallow: /a\n"
    b"User-agent: *\nContent-Usage: search=n\nDisallow: /b\n"
    b"User-agent: MyBot/2\nContent-Usage: train-ai=n\nDisallow: /c\n"
)
MANAGED = (
    b"User-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n\n"
    b"User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /admin\n"
)
OF_EACH = (
    b"Content-Signal: ai-train=no\n"
    b"User-agent: a\nContent-Signal: ai-train=yes\nAllow: /\n"
    b"User-agent: b\nAllow: /\nUser-agent: *\nAllow: /\n"
)
BEHIND = b"User-agent: *\nAllow: /\nUser-agent: a\nDisallow: /z\n\nContent-Signal: ai-train=no\n"
LINE = b"Content-Usage: train-ai=y\n"


@pytest.mark.parametrize(
    ("body", "tokens", "lines", "training"),
    [
        # Nothing is inherited from everyone.
        (MERGED, ["mybot-images", "mybot"], [2, 8], "disallow"),
        # A managed block is a second group of everyone.
        (MANAGED, ["mybot"], [2, 2], "disallow"),
        # Signals are those of the own group, or those above all groups.
        (OF_EACH, ["a"], [3], "allow"),
        (OF_EACH, ["b"], [1], "disallow"),
        (OF_EACH, ["c"], [1], "disallow"),
        (b"Content-Signal: ai-train=no\nUser-agent: a\nDisallow: /", ["b"], [1], "disallow"),
        # Other lines above all groups are nobody's.
        (b"Content-Usage: train-ai=n\nUser-agent: *\nAllow: /\n", ["a"], [], "unknown"),
        # The draft of this line was abandoned.
        (b"User-agent: *\nDisallowAITraining: /\n", ["a"], [], "unknown"),
        # Signals behind a blank line are those of the group above.
        (BEHIND, ["a"], [6], "disallow"),
        # Of more lines than are read, all are a disallow.
        (b"User-agent: *\n" + LINE * 1_300, ["a"], [2], "allow"),
        (b"User-agent: *\n" + LINE * 1_350, ["a"], [None] * 2, "disallow"),
    ],
)
def test_whose_a_line_is(body, tokens, lines, training):
    said = of(body, "/x", *tokens)
    assert [statement.line for statement in said.statements] == lines
    assert said.result("ai-training") == training


@pytest.mark.parametrize(
    ("robots", "header", "result"),
    [
        ("train-ai=y", "train-ai=n", "disallow"),
        ("train-ai=n", "train-ai=y", "disallow"),
        ("train-ai=y", "train-ai", "allow"),
    ],
)
def test_a_header_on_top_is_combined(robots, header, result):
    said = usage(f"Content-Usage: {robots}").with_header("Content-Usage", [header])
    assert said.value("train-ai") == result
    assert said.result("ai-training") == result


def test_lines_of_a_header_are_joined():
    said = Usage().with_header("content-usage", [b"train-ai=y", "search=n, train-ai=n"])
    assert said.with_header("Server", ["train-ai=y"]) == said
    assert letters(said) == {"train-ai": "n", "search": "n"}
    assert letters(Usage().with_header("content-usage", ["train-ai=n", "broken="])) == {}


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("Content-Usage: /\ttrain-ai=n", True),
        ("Content-Usage: /x  train-ai=n", True),
        ("Content-Usage: *x train-ai=n", False),
        ("Content-Usage: /xy train-ai=n", False),
        ("Content-Usage train-ai=n", False),
        ("Content-Usage: train-ai=(n)", False),
        ("Content-Usage: train-ai=?0", False),
    ],
)
def test_how_a_line_may_be_written(line, is_read):
    assert letters(usage(line)) == ({"train-ai": "n"} if is_read else {})


def test_a_path_that_is_no_utf_8():
    said = of(b"User-agent: *\nContent-Usage: /\xff train-ai=n\n", "/%FF")
    assert said.value("train-ai") == "disallow"
    assert said.statements[0].raw == "/\\xff train-ai=n"


def test_statements_tell_where_they_come_from():
    (said,) = usage("Content-Usage: /x train-ai=n, foo=y").statements
    assert said == Statement("content-usage", "train-ai", "disallow", "/x train-ai=n, foo=y", 2)
    assert said.place == "robots.txt"
    assert said.revision == REVISIONS["content-usage"]
    for value in ("ai=n", "train-ai = n", "/x"):  # of these, nothing can be read
        (unread,) = usage(f"Content-Usage: {value}").statements
        assert unread == Statement("content-usage", "", "unknown", value, 2)
    # That such a line counts is a decision of our own.
    (said,) = of(b"Content-Signal: ai-train=no\nUser-agent: *\nAllow: /\n").statements
    assert (said.label, said.line) == ("ai-train", 1)
    assert said.place == "robots.txt above the first User-agent line"
    assert said.revision.startswith(REVISIONS["content-signal"])
    assert "decision of scrapy-rep" in said.revision


@pytest.mark.parametrize(
    ("lines", "path", "results"),
    [
        (["search=yes,ai-train=no,use=reference"], "/x", ("allow", "unknown", "disallow")),
        (["ai_train=no, ai-retrieval=no"], "/x", ("unknown", "unknown", "disallow")),
        (["ai-input=no, search=maybe, =, x"], "/x", ("unknown", "disallow", "unknown")),
        (["search=yes", "search=no"], "/x", ("disallow", "unknown", "unknown")),
        (["search=no", "/blog/ ai-train=no"], "/blog/x", ("unknown", "unknown", "disallow")),
    ],
)
@pytest.mark.parametrize("field", ["Content-Signal", "content-signals"])
def test_content_signal(lines, path, results, field):
    said = usage(*(f"{field}: {line}" for line in lines), path=path)
    assert three(said) == results
    assert said.value("search") == "unknown"  # of Content-Usage that is


@pytest.mark.parametrize(
    ("outside", "inside", "path", "results"),
    [
        (["ai-train=no"], [], "/x", ("unknown", "unknown", "disallow")),
        (["search=yes, ai-train=no"], [], "/x", ("unknown", "unknown", "disallow")),
        (["ai-train=no", "/open/ ai-train=yes"], [], "/open/x", ("unknown", "unknown", "disallow")),
        (["/a/ search=no"], [], "/a/x", ("disallow", "unknown", "unknown")),
        (["ai-train=no"], ["ai-train=yes"], "/x", ("unknown", "unknown", "allow")),
        (["ai-train=no"], ["/a/ search=yes"], "/x", ("unknown", "unknown", "unknown")),
    ],
)
@pytest.mark.parametrize("field", ["Content-Signal", "content-signals"])
@pytest.mark.parametrize("agent", ["*", "mybot"])
def test_a_no_before_the_first_group_is_for_all_without_signals(
    outside, inside, path, results, field, agent
):
    above, within = (
        "".join(f"{field}: {value}\n" for value in values) for values in (outside, inside)
    )
    assert three(of(f"{above}User-agent: {agent}\n{within}Allow: /".encode(), path)) == results


def test_more_lines_before_the_first_group_than_are_read_say_no():
    lines = b"Content-Signal: search=yes\n" * 1_300
    without, signals = b"User-agent: *\nAllow: /\n", b"User-agent: *\nContent-Signal: search=yes\n"
    results = [of(lines + group).result("tdm") for group in (without, signals)]
    assert results == ["disallow", "unknown"]


@pytest.mark.parametrize(
    ("header", "meta", "result"),
    [
        ("1", None, "disallow"),
        ("0", None, "allow"),
        (None, "1", "disallow"),
        ("0", "1", "disallow"),
        ("1", "0", "allow"),
        ("2", None, "unknown"),
        ("0, 1", None, "disallow"),
    ],
)
@pytest.mark.parametrize("order", [1, -1])
def test_what_tdmrep_says_later_replaces(header, meta, result, order):
    said = Usage()
    steps = [
        lambda said: said.with_header("TDM-Reservation", [] if header is None else [header]),
        lambda said: said.with_meta([] if meta is None else [("TDM-Reservation", meta)]),
    ]
    for step in steps[::order]:
        said = step(said)
    assert said.result("tdm") == said.result("ai-training") == result
    assert said.result("search") == "unknown"


@pytest.mark.parametrize(
    ("reservation", "purposes", "place"),
    [
        (0, ["search"], "robots.txt"),
        (1, ["search"], "robots.txt"),
        (1, ["ai-input", "tdm"], "header"),
        (0, ["tdm"], None),
        (2, ["tdm"], None),
        (1, ["ai-input"], None),
    ],
)
def test_the_statement_that_disallows_one_of_some_purposes(reservation, purposes, place):
    said = usage("Content-Usage: search=n, train-ai=y")
    said = said.with_header("TDM-Reservation", [str(reservation)])
    found = said.first_disallowing(purposes)
    assert (found and found.place) == place


LICENSES = b"License: https://a.example/1\nUser-agent: x\nLicense: https://a.example/2\nLicense: /3\nAllow: /\nUser-agent: *\nDisallow: /no\n"


@pytest.mark.parametrize(("token", "uri"), [("x", "/2"), ("y", "/1")])
@pytest.mark.parametrize("path", ["/", "/no"])
def test_licenses(token, uri, path):
    said = RobotsTxt.parse(LICENSES).usage(URL + path, token)
    assert [(s.source, s.raw) for s in said.statements] == [("license", f"https://a.example{uri}")]
    assert {said.result(purpose) for purpose in PURPOSES} == {"unknown"}


@pytest.mark.parametrize(
    ("link", "uris"),
    [
        ('<https://a.example/1>; rel="license"; type="application/rsl+xml"', ["1"]),
        ("<https://a.example/1>; type=application/rsl+xml; rel=license", ["1"]),
        ('<https://a.example/1>; title="a, b; <c>"; rel="x license"; type="application/RSL+xml"', ["1"]),
        ('<1>; rel="license"; type="application/rsl+xml"', []),
        # What is never closed is read once, not from each of its parts anew.
        ('<1>; title="<https://a.example/1>; rel=license; type=application/rsl+xml', []),
        ('<https://a.example/1>; rel="next", <https://a.example/2>; rel="license"; type="application/rsl+xml"', ["2"]),
    ],
)  # fmt: skip
def test_licenses_in_a_link_header(link, uris):
    said = Usage().with_header("Link", [link])
    assert [s.raw.rpartition("/")[2] for s in said.statements] == uris


@pytest.mark.parametrize(
    ("header", "labels"),
    [
        ("noai", ["noai"]),
        ("noindex, NoAI,noimageai", ["noai", "noimageai"]),
        ("mybot: noml", ["noml"]),
        ("otherbot: noai", []),
        ("otherbot: noai, mybot: noml", ["noml"]),
        ("unavailable_after: Friday, 25-Jun-10 15:00:00 PST, noai", ["noai"]),
        ("noimageai noai", ["noai", "noimageai"]),
    ],
)
def test_tags_in_a_header(header, labels):
    said = usage("Content-Usage: search=y").with_header("X-Robots-Tag", [header])
    assert [s.label for s in said.statements if s.source == "tags"] == labels
    assert said.result("ai-training") == ("disallow" if labels else "unknown")


@pytest.mark.parametrize(
    ("name", "content", "result"),
    [
        ("robots", "noai", "disallow"),
        ("mybot", "noai", "disallow"),
        ("otherbot", "noai", "unknown"),
        ("robots", "\ufeffnoai", "disallow"),
        ("description", "noai", "unknown"),
    ],
)
def test_tags_in_meta_elements(name, content, result):
    assert Usage(tokens=("MyBot",)).with_meta([(name, content)]).result("ai-training") == result


def test_across_sources_any_disallow_counts():
    said = usage("Content-Usage: train-ai=y, search=y", "Content-Signal: ai-train=no, ai-input=yes")
    assert {purpose: said.result(purpose) for purpose in PURPOSES} == {
        "search": "allow",
        "ai-input": "allow",
        "ai-training": "disallow",
        "tdm": "unknown",
    }


def test_a_purpose_that_is_none():
    with pytest.raises(ValueError, match="search, ai-input, ai-training, tdm"):
        Usage().result("training")


def test_preferences_are_judged_by_purposes_and_go_through_json():
    said = usage("Content-Usage: train-ai=n, search=y", "License: https://a.example/1")
    said = said.with_header("tdm-reservation", ["1"])
    assert Usage.from_dict(json.loads(json.dumps(said.as_dict()))) == said
    judged = judge(said, ["search", "ai-training"])
    assert judged.refused
    assert not judge(said, ["search"]).refused
    results = {"search": "allow", "ai-training": "disallow"}
    assert judged.as_dict() == {"results": results, **said.as_dict()}


def test_lines_know_their_size():
    robots = RobotsTxt.parse(b"Content-Signal: x=no\nUser-agent: *\nLicense: https://a.example/1\n")
    assert 0 == NO_USAGE_LINES.nbytes < 500 < robots.usage_lines_for("a").nbytes < 2_000


@pytest.mark.parametrize("value", ["0,", "x,", "noindex,"])
def test_of_more_text_than_is_read_all_is_disallowed(value):
    most = value * (MAX_TAG_TEXT // len(value))
    usage = Usage(tokens=("a",))
    for name in ("tdm-reservation", "robots"):
        assert usage.with_meta([(name, most)]).result("ai-training") != "disallow"
        assert usage.with_meta([(name, most + value)]).result("ai-training") == "disallow"
    for name in ("TDM-Reservation", "X-Robots-Tag"):
        assert usage.with_header(name, [most + value]).result("ai-training") == "disallow"


def test_elements_of_a_page_with_equal_names_are_read_together():
    elements = [("robots", "noimageai"), ("keywords", "noml"), (" Robots", "noai")]
    said = Usage(tokens=("MyBot",)).with_meta([*elements, ("tdm-reservation", "0")])
    assert [s.label for s in said.statements] == ["noai", "noimageai", "tdm-reservation"]
    assert said.result("tdm") == "allow"
    # Names with blanks around them are no way to say more.
    padded = [(" " * n + "robots", "x," * 100) for n in range(MAX_TAG_TEXT // 200 + 1)]
    assert Usage().with_meta(padded).result("ai-training") == "disallow"


@pytest.mark.parametrize("name", ["robots", "tdm-reservation", "description"])
def test_of_more_elements_than_are_read_all_is_disallowed(name):
    assert Usage().with_meta(None).result("tdm") == "disallow"  # they can't be read
    elements = [("description", "")] * (MAX_META_ELEMENTS - 1)
    assert Usage().with_meta([*elements, (name, "")]).result("tdm") == "unknown"
    rest = iter([*elements, *[(name, "")] * 3])
    said = Usage().with_meta(rest)
    assert said.result("tdm") == said.result("ai-training") == "disallow"
    assert said.statements[0].raw == "more than 20,000 meta elements"
    assert len(list(rest)) == 1


def test_lines_are_read_up_to_the_limit_to_the_byte():
    lines = [b"Content-Signal: /%d x=y" % number for number in range(4)]
    lines = [line + b" " + b"z" * (MAX_USAGE_BYTES // 4 - len(line) - 1) for line in lines]
    body = b"\n".join([b"User-agent: *", *lines, b""])
    assert of(body).result("search") == "unknown"
    assert of(body + b"Content-Signal: /a x=y\n").result("search") == "disallow"


def test_as_many_uris_of_licenses_and_policies_as_the_limit_are_kept():
    links = [
        f'<https://a.example/{n}>; rel="license"; type="application/rsl+xml"' for n in range(30)
    ]
    policies = [f"https://a.example/p{n}" for n in range(30)]
    usage = Usage().with_header("Link", links).with_header("TDM-Policy", policies)
    assert MAX_USAGE_URIS == 16
    assert len(usage.statements) == MAX_USAGE_URIS
    assert len(Usage().with_header("TDM-Policy", policies).statements) == MAX_USAGE_URIS
