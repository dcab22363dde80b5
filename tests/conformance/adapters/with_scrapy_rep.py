"""The only file here that imports scrapy-rep."""

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in

WORDS = {
    "content-usage": {"allow": "y", "disallow": "n"},
    "content-signal": {"allow": "yes", "disallow": "no"},
}


def allowed(robots, tokens, url):
    return robots.verdict(url, *tokens).allowed


def more(robots, tokens, url):
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
        "line": robots.verdict(url, *tokens).line,
        "sitemaps": robots.sitemaps,
        "crawl_delay": delay and delay.seconds,
        **said,
    }


if __name__ == "__main__":
    from pipe import serve

    serve(RobotsTxt.parse, allowed, more, package="scrapy-rep", takes_several=True)
