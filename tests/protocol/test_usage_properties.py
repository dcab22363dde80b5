"""What holds of preferences in every file."""

from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.usage.statement import MEANINGS, PURPOSES

URL = "http://h"
paths = st.sampled_from(["", "/ ", "/a ", "/a* ", "/*b ", "/ab$ ", "/%61 ", "/b\t"])
targets = st.sampled_from(["/", "/a", "/ab", "/abb", "/b", "/ac?x=b"])
usage_words = st.lists(
    st.tuples(
        st.sampled_from(["train-ai", "search", "ai"]), st.sampled_from(["=y", "=n", "", "=1"])
    ),
    max_size=3,
).map(lambda pairs: ", ".join("".join(pair) for pair in pairs))
signals = st.lists(
    st.tuples(st.sampled_from(["ai-train", "search", "x"]), st.sampled_from(["=yes", "=no", "="])),
    max_size=3,
).map(lambda pairs: ",".join("".join(pair) for pair in pairs))
lines = st.one_of(
    st.builds("Content-Usage: {}{}".format, paths, usage_words),
    st.builds("Content-Signal: {}{}".format, paths, signals),
    st.sampled_from(["License: http://l/1", "Disallow: /c", "", "x"]),
)


def results(usage):
    labels = {label for _, label in MEANINGS}
    return {
        **{purpose: usage.result(purpose) for purpose in PURPOSES},
        **{label: usage.value(label) for label in labels},
    }


@given(st.lists(lines, max_size=8), targets, st.randoms())
def test_the_order_of_lines_changes_nothing(them, path, rng):
    shuffled = list(them)
    rng.shuffle(shuffled)
    one, other = (
        RobotsTxt.parse("\n".join(["User-agent: *", *some]).encode()).usage(URL + path, "a")
        for some in (them, shuffled)
    )
    assert results(one) == results(other)


@given(st.lists(lines, max_size=8), st.lists(lines, max_size=8), targets)
def test_lines_above_all_groups_only_disallow(above, them, path):
    group = ["User-agent: *", *them]
    before, after = (
        results(RobotsTxt.parse("\n".join(some).encode()).usage(URL + path))
        for some in (group, [*above, *group])
    )
    changed = {each for each in before if before[each] != after[each]}
    assert all(after[each] == "disallow" for each in changed)
    if any(line.startswith("Content-Signal") for line in them):
        assert not changed
