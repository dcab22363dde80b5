from pipe import serve
from robots import RobotsParser


def answer(body, token, url):
    robots = RobotsParser.from_string(body.decode("utf-8", "replace"))
    return {"allowed": robots.can_fetch(token, url), "sitemaps": robots.sitemaps or []}


serve(answer, "robotspy")
