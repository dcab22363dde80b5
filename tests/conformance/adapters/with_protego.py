from pipe import serve
from protego import Protego


def answer(body, token, url):
    # As Scrapy decodes it.
    robots = Protego.parse(body.decode("utf-8-sig", "ignore"))
    return {
        "allowed": robots.can_fetch(url, token),
        "sitemaps": list(robots.sitemaps),
        "crawl_delay": robots.crawl_delay(token),
    }


serve(answer, "Protego")
