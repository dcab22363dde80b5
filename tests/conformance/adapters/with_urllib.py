from urllib.robotparser import RobotFileParser

from pipe import serve


def answer(body, token, url):
    robots = RobotFileParser()
    robots.parse(body.decode("utf-8", "replace").splitlines())
    return {
        "allowed": robots.can_fetch(token, url),
        "sitemaps": robots.site_maps() or [],
        "crawl_delay": robots.crawl_delay(token),
    }


serve(answer)
