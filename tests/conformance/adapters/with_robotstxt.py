from pipe import serve
from robotstxt import CitedFile


def parse(body):
    return CitedFile(body.decode("utf-8", "replace"))


def allowed(robots, token, url):
    return not robots.test_url(url, token)["disallowed"]


serve(parse, allowed, package="robotstxt")
