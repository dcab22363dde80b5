import sys
from urllib.robotparser import RobotFileParser

from pipe import serve

# As its read decodes; that of earlier versions takes nothing but UTF-8.
ERRORS = "surrogateescape" if sys.version_info >= (3, 13) else "replace"


def parse(body):
    robots = RobotFileParser()
    robots.parse(body.decode("utf-8", ERRORS).splitlines())
    return robots


def allowed(robots, token, url):
    return robots.can_fetch(token, url)


def more(robots, token, url):
    return {"sitemaps": robots.site_maps() or [], "crawl_delay": robots.crawl_delay(token)}


serve(parse, allowed, more)
