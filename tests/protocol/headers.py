"""Values of headers as a hostile site may write them."""

from hypothesis import strategies as st

PARTS = [
    "max-age", "no-cache", "noindex", "nofollow", "none", "robots", "unavailable_after", "Fri", "25", "06", "Jun",
    "2010", "10", "0", "99", "9" * 11, "9" * 400, "15:00:00", "00:60:61", "24:00", "-0800", "+9999", "-99999999",
    "GMT", "EST", "UTC", "Z", "T", "\xb2", "\xa0", "\x85", "\x00", "\t", " ", " ", ",", ", ", ":", ";", "=", '"',
    "(", ")", "\\", "-", "/", ".", "+",
]  # fmt: skip
values = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=20).map("".join),
    st.text(st.characters(max_codepoint=255), max_size=60),
)
