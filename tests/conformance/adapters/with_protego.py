from pipe import serve
from protego import Protego


def parse(body):
    # As Scrapy decodes it.
    return Protego.parse(body.decode("utf-8-sig", "ignore"))


def allowed(robots, token, url):
    return robots.can_fetch(url, token)


def more(robots, token, url):
    return {"sitemaps": list(robots.sitemaps), "crawl_delay": robots.crawl_delay(token)}


serve(parse, allowed, more, package="Protego")
