from pipe import serve
from robotstxt import RobotsFile


def answer(body, token, url):
    robots = RobotsFile(body.decode("utf-8", "replace"))
    return {"allowed": not robots.test_url(url, token)["disallowed"]}


serve(answer, "robotstxt")
