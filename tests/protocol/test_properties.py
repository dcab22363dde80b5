"""What holds of every file and every URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_rep.protocol.canonical import canonical_patterns, canonical_target
from scrapy_rep.protocol.lexer import lex


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
