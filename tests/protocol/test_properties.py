"""What holds of every file and every URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol import RobotsTxt, Verdict, origin_of, target_of
from scrapy_rep.protocol.canonical import canonical_patterns, canonical_target
from scrapy_rep.protocol.lexer import lex
from scrapy_rep.protocol.origin import split_url

FIELDS = ["user-agent", "allow", "disallow", "sitemap", "crawl-delay", "disalow", "x", ""]
TOKENS = ["a", "b", "c", "*"]
paths = st.text(alphabet="/ab*$%2Aé?", max_size=8).map(lambda text: "/" + text)
lines = st.builds(
    "{}{}{}".format,
    st.sampled_from(FIELDS),
    st.sampled_from([": ", ":", " ", "", " : ", "#"]),
    st.one_of(paths, st.sampled_from(TOKENS), st.text(max_size=5)),
)
files = st.one_of(
    st.binary(max_size=200),
    st.lists(lines, max_size=12).map(lambda them: "\n".join(them).encode("utf-8", "replace")),
)
groups = st.lists(
    st.tuples(
        st.sampled_from(TOKENS),
        st.lists(st.tuples(st.sampled_from(["allow", "disallow"]), paths), max_size=4),
    ),
    max_size=5,
)


def body_of(parts):
    text = [
        f"user-agent: {token}\n"
        + "".join(f"{field}: {path}\n" for field, path in rules)
        + ("" if rules else "disallow:\n")
        for token, rules in parts
    ]
    return "".join(text).encode()


@given(files, st.one_of(st.text(), paths.map("http://h{}".format)), st.lists(st.text(max_size=3)))
def test_any_bytes_parse_and_a_verdict_never_raises(body, url, tokens):
    robots = RobotsTxt.parse(body)
    assert isinstance(robots.verdict(url, *tokens), Verdict)
    group = robots.group_for(*tokens)
    assert group is None or [rule.line for rule in group.rules] == sorted(
        rule.line for rule in group.rules
    )


@given(st.binary().filter(lambda body: not body.startswith(b"\xef")))  # no byte order mark
def test_line_numbers_are_those_of_an_editor(body):
    text = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert [line.number for line in lex(body)] == list(
        range(1, len(text.split(b"\n")) + (text[-1:] not in b"\n"))
    )


@given(st.text(alphabet=st.characters(exclude_characters="%")))
def test_canonical_form_agrees_with_itself(text):
    form = canonical_target(text)
    assert canonical_target(form) == form
    assert form.isascii()
    assert form.isprintable()


@given(st.text(alphabet="/abé~-.%41cA9f"))
def test_canonical_form_of_patterns_and_targets_is_one(text):
    assert canonical_patterns(text.encode()) == canonical_target(text)


@pytest.mark.spec("M-2")
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="%*$")))
def test_utf8_raw_or_escaped_is_one(text):
    escaped = "".join(f"%{octet:02x}" for octet in text.encode())
    raw = canonical_target(text)
    reserved = set("!#&'()+,/:;=?@[]")
    if not reserved & set(text):
        assert canonical_target(escaped) == raw


@pytest.mark.spec("G-4")
@given(groups, paths, st.sampled_from(TOKENS), st.randoms())
def test_order_of_groups_does_not_matter(parts, path, token, random):
    shuffled = parts[:]
    random.shuffle(shuffled)
    one = RobotsTxt.parse(body_of(parts)).verdict(f"http://h{path}", token)
    other = RobotsTxt.parse(body_of(shuffled)).verdict(f"http://h{path}", token)
    assert one.allowed == other.allowed


@given(groups, paths, st.sampled_from(TOKENS))
def test_an_unrelated_group_changes_nothing(parts, path, token):
    more = [*parts, ("unrelated", [("disallow", "/"), ("allow", path)])]
    one = RobotsTxt.parse(body_of(parts)).verdict(f"http://h{path}", token)
    assert one == RobotsTxt.parse(body_of(more)).verdict(f"http://h{path}", token)


@given(st.text(max_size=60))
def test_origin_or_value_error(text):
    for url in (text, f"http://{text}", f"https://{text}/x"):
        assert target_of(url).startswith("/")
        try:
            origin = origin_of(url)
        except ValueError:
            continue
        assert origin_of(str(origin)) == origin
        assert origin_of(origin.robotstxt_url) == origin


def origin_or_none(url):
    try:
        return origin_of(url)
    except ValueError:
        return None


@given(
    st.one_of(
        st.text(),
        st.text(alphabet="hftps:/@[]?#%.aé1 \\\t\n", max_size=20),
        st.text(alphabet="/@[]:?#%.aé1 \\\t\n", max_size=12).map("http://{}".format),
        st.integers(1_000, 3_000).map(lambda length: f"https://{'a' * length}/b"),
    )
)
def test_a_url_is_split_into_its_origin_and_its_target(url):
    origin = origin_or_none(url)
    try:
        split = split_url(url)
    except ValueError:
        split = None
    assert split == (None if origin is None else (origin, target_of(url)))


def test_an_invalid_escape_stays_as_it_is_beside_others():
    assert canonical_target("/%zz9%41%zz9") == "/%zz9A%zz9"
    assert canonical_patterns(b"/%zz9%41%zz9*$") == "/%zz9A%zz9*$"
