from pipe import serve
from robots import RobotsParser


def parse(body):
    # Its from_uri decodes so, too.
    return RobotsParser.from_string(body.decode("utf-8-sig", "replace"))


def allowed(robots, token, url):
    return robots.can_fetch(token, url)


def more(robots, token, url):
    return {"sitemaps": robots.sitemaps or []}


serve(parse, allowed, more, package="robotspy")
