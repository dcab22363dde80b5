from pipe import serve
from robots import RobotsParser


def answer(body, token, url):
    # Its from_uri decodes so, too.
    robots = RobotsParser.from_string(body.decode("utf-8-sig", "replace"))
    return {"allowed": robots.can_fetch(token, url), "sitemaps": robots.sitemaps or []}


serve(answer, "robotspy")
