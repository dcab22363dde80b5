"""Why a fetch failed, in words."""

import pytest

from scrapy_rep.fetch.errors import short_cause


@pytest.mark.parametrize(
    ("cause", "short"),
    [
        ("status 503", "status 503"),
        ("redirect to a private address: http://a.example/", "redirect to a private address"),
        ("a proxy gave no answer (127.0.0.1:3128: timed out)", "a proxy gave no answer"),
    ],
)
def test_what_belongs_to_one_site_is_left_out_of_a_short_cause(cause, short):
    assert short_cause(cause) == short
