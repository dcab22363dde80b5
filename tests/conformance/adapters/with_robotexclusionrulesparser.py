from pipe import serve
from robotexclusionrulesparser import RobotExclusionRulesParser


def answer(body, token, url):
    robots = RobotExclusionRulesParser()
    robots.parse(body.decode("utf-8", "replace"))
    return {
        "allowed": robots.is_allowed(token, url),
        "sitemaps": robots.sitemaps,
        "crawl_delay": robots.get_crawl_delay(token),
    }


serve(answer, "robotexclusionrulesparser")
