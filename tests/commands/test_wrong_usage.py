"""What is said about a wrong command line, with status 2."""

import pytest

A = "http://a.example/"
STORE = ["cache", "list", "-s"]
UNREADABLE = "redis-py can't read that URL"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param([], "a subcommand is required, one of: check, explain, lint", marks=pytest.mark.real_process),
        (["chekc"], "check, explain, lint, cache, plan (got: 'chekc')\n"),
        (["check"], "check requires URLs"),
        (["check", "--frobnicate", A], "unknown option: --frobnicate\n"),
        (["check", "--file", "none.txt", A], "none.txt: No such file"),
        (["check", "--file", "-", "--urls-from", "-"], "can't both come from standard input"),
        (["check", "--agent", "böt", A], "it must be a product token or a User-Agent"),
        (["check", "--purpose", "tdm", A], "--purpose is an option of explain, plan only"),
        (["check", "--fail-if", "hours=1", A], "--fail-if is an option of plan only"),
        (["check", "-s", "REP_TIMEOUT=soon", A], "REP_TIMEOUT is 'soon'"),
        (["explain", "a.example/x"], "a.example/x: not an absolute http, https or ftp URL\n"),
        (["lint", "--file", "x", "x"], "--file is an option of check, explain only"),
        (["cache"], "cache requires an action, one of: list, show URL"),
        (["cache", "frobnicate"], "list, show URL, drop URL (got: 'cache frobnicate')\n"),
        (["cache", "list", A], "(got: 'cache list http://a.example/')"),
        (["cache", "show"], "(got: 'cache show')"),
        (["cache", "show", "a.example"], "a.example: not an absolute http, https or ftp URL\n"),
        (["cache", "list"], "name a store of crawls, as in -s REP_STORE=sqlite:///robots.sqlite"),
        (["cache", "list", "--fresh"], "--fresh is an option of check, explain, lint, plan only"),
        ([*STORE, "REP_STORE=redis://a/b"], "it must be 'redis://HOST:PORT/NUMBER'"),
        ([*STORE, "REP_STORE=redis://a?db=x"], UNREADABLE),
        ([*STORE, "REP_STORE=rediss://a?nosuch=1"], UNREADABLE),
        ([*STORE, "REP_STORE=redis://a?tiemout=1"], "did you mean 'timeout'?"),
        (["plan"], "plan requires URLs"),
        (["plan", "--json", A], "--json is an option of check, explain, lint, cache only"),
        (["check", "--spider", "pages", A], "there is no spider 'pages' in this project"),
        (["plan", "--fail-if", "unreachable=5", A], "such as disallowed=10%, unreachable=0% or"),
        (["plan", "--fail-if", "hours=5%", A], "or hours=8, not 'hours=5%'"),
        (["plan", "--fail-if", "urls=5%", A], "or hours=8, not 'urls=5%'"),
    ],
)  # fmt: skip
def test_wrong_usage_is_status_2(robots_command, tmp_path, arguments, says):
    run = robots_command(*arguments)
    assert run.status == 2
    assert says in run.err
