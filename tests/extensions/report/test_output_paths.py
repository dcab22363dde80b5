"""Where reports are written, and that no crawl writes over another's."""

import json
import re

import pytest

from tests.crawling.crawl import crawl
from tests.crawling.web import robots

RULES = "User-agent: *\nDisallow: /private\n"


class Broken:
    """A component that can't be made."""

    @classmethod
    def from_crawler(cls, crawler):
        raise ZeroDivisionError


def origins(path):
    return [row["origin"] for row in json.loads(path.read_text())["origins"]]


async def test_the_next_crawl_takes_the_place_of_the_last_unless_it_fails_at_its_start(
    web, tmp_path
):
    first, second = (web.site(robots(RULES)) for _ in range(2))
    path = tmp_path / "report.json"
    await crawl(first.url("/"), settings={"REP_REPORT": path})
    before = path.read_text()
    with pytest.raises(ZeroDivisionError):
        await crawl(second.url("/"), settings={"REP_REPORT": path, "ITEM_PIPELINES": {Broken: 1}})
    assert path.read_text() == before
    await crawl(second.url("/"), settings={"REP_REPORT": path})
    assert list(tmp_path.iterdir()) == [path]
    assert origins(path) == [second.url("")]


async def test_placeholders_are_those_of_feeds(web, tmp_path):
    site = web.site(robots(RULES))
    setting = str(tmp_path / "new" / "reports" / "%(name)s %(worker)s 100%% %(time)s.json")
    await crawl(site.url("/"), settings={"REP_REPORT": setting}, worker=3)
    (path,) = (tmp_path / "new" / "reports").iterdir()
    assert re.fullmatch(r"list 3 100% \d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\+00-00\.json", path.name)
    assert origins(path) == [site.url("")]
