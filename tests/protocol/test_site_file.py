"""The files of a site, and what stores have them under."""

import pytest

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.protocol.usage.tdmrep import TDMREP_PATH

SITE = "https://example.com:8443"
ORIGIN = origin_of(SITE)


@pytest.mark.parametrize(
    ("file", "key", "url", "name", "said"),
    [
        (SiteFile(ORIGIN), SITE, f"{SITE}/robots.txt", "robots.txt", f"robots.txt of {SITE}"),
        (
            SiteFile(ORIGIN, TDMREP_PATH),
            SITE + TDMREP_PATH,
            SITE + TDMREP_PATH,
            "tdmrep.json",
            f"tdmrep.json of {SITE}",
        ),
    ],
)
def test_a_file_is_known_by_its_key(file, key, url, name, said):
    assert (file.key, file.url, file.name, str(file)) == (key, url, name, said)
    assert SiteFile.from_key(key) == file
    assert file.is_robotstxt == (name == "robots.txt")


@pytest.mark.parametrize(
    "key", ["example.com", "", f"{SITE}/", f"{SITE}/robots.txt", "HTTPS://example.com", f"{SITE}#"]
)
def test_what_is_no_key_of_ours_is_no_file(key):
    with pytest.raises(ValueError):  # noqa: PT011 - of split_url, too
        SiteFile.from_key(key)
