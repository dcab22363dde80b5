from pipe import serve
from reppy.robots import Robots


def answer(body, token, url):
    robots = Robots.parse("https://example.com/robots.txt", body)
    return {
        "allowed": robots.allowed(url, token),
        "sitemaps": list(robots.sitemaps),
        "crawl_delay": robots.agent(token).delay,
    }


serve(answer, "reppy")
