from pipe import serve

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in

WORDS = {
    "content-usage": {"allow": "y", "disallow": "n"},
    "content-signal": {"allow": "yes", "disallow": "no"},
}


def answer(body, tokens, url):
    robots = RobotsTxt.parse(body)
    verdict = robots.verdict(url, *tokens)
    delay = delay_in(robots.fields_for(*tokens, names=DELAY_FIELDS))
    statements = robots.usage(url, *tokens).statements
    said = {
        source.replace("-", "_"): {
            each.label: words[each.value]
            for each in statements
            if each.source == source and each.value in words
        }
        for source, words in WORDS.items()
    }
    return {
        "allowed": verdict.allowed,
        "line": verdict.line,
        "sitemaps": robots.sitemaps,
        "crawl_delay": delay and delay.seconds,
        **said,
    }


serve(answer, "scrapy-rep", takes_several=True)
