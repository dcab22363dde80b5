import os
import sys

from pipe import escaped, serve

# Not beside robotstxt: both have a package of that name.
sys.path.insert(0, f"{os.environ['CONFORMANCE_ENV']}/fast-robotstxt")

from robotstxt import RobotsMatcher


class Robots:
    def __init__(self, body):
        self.text = body.decode("utf-8", "replace")
        self.matcher = RobotsMatcher()


def allowed(robots, token, url):
    return robots.matcher.is_allowed(robots.text, token, escaped(url))


def more(robots, token, url):
    # Of the last verdict, as the matcher keeps it.
    line, delay = robots.matcher.matching_line, robots.matcher.crawl_delay
    signal = robots.matcher.content_signal or {}
    return {
        "line": line or None,
        "crawl_delay": delay,
        "content_signal": {
            name.replace("_", "-"): "yes" if value else "no"
            for name, value in signal.items()
            if value is not None
        },
    }


serve(Robots, allowed, more, package="fast-robotstxt")
