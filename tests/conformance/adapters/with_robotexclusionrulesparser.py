from pipe import serve
from robotexclusionrulesparser import RobotExclusionRulesParser


def parse(body):
    robots = RobotExclusionRulesParser()
    robots.parse(body.decode("utf-8", "replace"))
    return robots


def allowed(robots, token, url):
    return robots.is_allowed(token, url)


def more(robots, token, url):
    return {"sitemaps": robots.sitemaps, "crawl_delay": robots.get_crawl_delay(token)}


serve(parse, allowed, more, package="robotexclusionrulesparser")
