"""All of the corpus parses."""

import pytest

from scrapy_rep.protocol import RobotsTxt, target_of
from tests.protocol import corpus

pytestmark = pytest.mark.skipif(
    corpus.folder() is None, reason="no corpus at ../shared/corpus or $REP_CORPUS"
)


@pytest.mark.parametrize("name", ["files", "sites"])
def test_all_of_the_corpus_parses(name):
    count = 0
    for _, body, urls in corpus.read(name):
        robots = RobotsTxt.parse(body)
        rules = robots.rules_for("scrapy")
        for url in urls[:1] or ["https://example.com/"]:
            found = robots.explain(target_of(url), "scrapy")
            assert robots.verdict(url, "scrapy").rule == next(iter(found.matching), None)
        assert rules.nbytes < 50 * len(body) + 2_000
        count += 1
    assert count > 1_000
