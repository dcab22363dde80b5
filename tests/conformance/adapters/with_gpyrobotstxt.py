from gpyrobotstxt.robots_cc import RobotsMatcher
from pipe import escaped, serve


def allowed(body, token, url):
    return RobotsMatcher().one_agent_allowed_by_robots(body, token, escaped(url))


serve(bytes, allowed, package="gpyrobotstxt")
