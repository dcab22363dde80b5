from gpyrobotstxt.robots_cc import RobotsMatcher
from pipe import serve


def answer(body, token, url):
    return {"allowed": RobotsMatcher().one_agent_allowed_by_robots(body, token, url)}


serve(answer, "gpyrobotstxt")
