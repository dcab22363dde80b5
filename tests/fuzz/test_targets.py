"""Some inputs of the fuzzer for what reads data of sites and stores without I/O."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS, TOKENS, changed

WITH_FILES = {"sqlite", "redis"}
"""They take long: the fuzzer alone has them."""


@given(st.one_of(st.binary(), st.integers(0, 2**32).map(lambda n: changed(Random(n), TOKENS))))
def test_any_bytes_are_read(data):
    for name in TARGETS.keys() - WITH_FILES:
        TARGETS[name](data)
