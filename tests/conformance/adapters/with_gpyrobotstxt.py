from gpyrobotstxt.robots_cc import RobotsMatcher
from pipe import escaped, serve


def answer(body, token, url):
    return {"allowed": RobotsMatcher().one_agent_allowed_by_robots(body, token, escaped(url))}


serve(answer, "gpyrobotstxt")
