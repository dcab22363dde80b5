"""The crawlers that are compared, what is set for each, and why.

A crawler runs as it is installed. Set is only what makes it take part: that it obeys robots.txt, has
the name that robots.txt files of the test contain, follows all links, and takes the certificate and
the private addresses of the test. A time limit is set only for a crawler that would not give up a
site that hangs for more than a quarter of an hour.
"""

import shlex
from typing import NamedTuple

OBEYS = "obeys robots.txt, which is not the default"
NAME = "its name in this test"
LINKS = "follows all links, to any host and depth"
CERTIFICATE = "takes the certificate of the test"


class Crawler(NamedTuple):
    name: str
    version: str
    """The command that prints it."""
    command: str
    settings: tuple[tuple[str, str], ...]
    """What is set, and why."""
    token: str = "demobot"


def of_python(package):
    return f"python -c 'import importlib.metadata as m; print(m.version(\"{package}\"))'"


def of_node(package):
    return f"node -p 'require(\"{package}/package.json\").version'"


SPIDER = "scrapy runspider scrapy_acid.py -a start={start} -s USER_AGENT=demobot/1.0"
ADDONS = """-s 'ADDONS={"scrapy_rep.Addon": 500}'"""
GIVES_UP = "gives up a server that does not answer; by default only after hours"
BY_WGET = (("no-check-certificate", CERTIFICATE), ("tries, timeout", GIVES_UP))
# With the version of Python, whose parser it uses.
OF_CRAWL4AI = """python -c 'import importlib.metadata as m, platform as p; print(m.version("crawl4ai"), "on Python", p.python_version())'"""
ALL = (
    Crawler("scrapy-rep", of_python("scrapy-rep"), f"{SPIDER} {ADDONS}",
        (("ADDONS", "installs it in Scrapy"), ("USER_AGENT", NAME))),
    Crawler("Scrapy's built-in", of_python("scrapy"), f"{SPIDER} -s ROBOTSTXT_OBEY=True",
        (("ROBOTSTXT_OBEY", OBEYS), ("USER_AGENT", NAME))),
    Crawler("Crawlee (Python)", of_python("crawlee"), "python crawlee_acid.py {start}",
        (("respect_robots_txt_file", OBEYS), ("headers", NAME), ("verify", CERTIFICATE), ("strategy", LINKS))),
    Crawler("Crawlee (JavaScript)", of_node("crawlee"), "node crawlee_acid.cjs {start}",
        (("respectRobotsTxtFile", OBEYS), ("headers", NAME), ("ignoreSslErrors", CERTIFICATE), ("strategy", LINKS))),
    Crawler("Crawl4AI", OF_CRAWL4AI, "python crawl4ai_acid.py {start}",
        (("check_robots_txt", OBEYS), ("user_agent", NAME), ("verify_ssl", CERTIFICATE), ("deep_crawl_strategy", LINKS),
         ("crawler_strategy", "runs without a browser"),
         ("cache_mode", "fetches pages, in place of those of a run before"))),
    Crawler("Scrapling", of_python("scrapling"), "python scrapling_acid.py {start}",
        (("robots_txt_obey", OBEYS), ("headers, stealthy_headers", NAME), ("verify", CERTIFICATE),
         ("follow_redirects", "follows redirects to private addresses, as those of the test"))),
    Crawler("simplecrawler", of_node("simplecrawler"), "node simplecrawler_acid.cjs {start}",
        (("userAgent", NAME), ("ignoreInvalidSSL", CERTIFICATE), ("filterByDomain", LINKS))),
    Crawler("LinkChecker", of_python("linkchecker"),
        "linkchecker -f linkchecker_acid.ini --recursion-level=-1 --check-extern"
        " --user-agent=demobot/1.0 --output=none {start}",
        (("user-agent", NAME), ("sslverify", CERTIFICATE), ("recursion-level, check-extern, internlinks", LINKS))),
    Crawler("Wget", "wget --version",
        "wget --recursive --level=inf --span-hosts --tries=1 --timeout=30 --no-check-certificate {start}",
        (("recursive, level, span-hosts", LINKS), *BY_WGET), "wget"),
    Crawler("Wget2", "wget2 --version",
        "wget2 --recursive --level=0 --span-hosts --tries=1 --timeout=30 --no-check-certificate {start}",
        (("recursive, level, span-hosts", LINKS), *BY_WGET), "wget2"),
    Crawler("HTTrack", "httrack --version",
        "httrack {start} --quiet --ext-depth=20 --depth=20 --go-everywhere --path=.",
        (("depth, ext-depth, go-everywhere", LINKS), ("path", "writes to the current folder")), "httrack"),
    Crawler("Playwright alone", of_python("playwright"), "python playwright_acid.py {start}",
        (("user_agent", NAME), ("ignore_https_errors", CERTIFICATE),
         ("the program", f"{LINKS}, as a browser follows none"))),
)  # fmt: skip
# For a test of all stories at once: what unreachable sites have is given up, and times are short.
QUICK = shlex.split(
    "-s REP_CACHE_TTL_MIN=1 -s REP_STORE=memory:// -s REP_TIMEOUT=10 -s REP_RETRY_DELAY=1"
    " -s REP_DEFER_TIMEOUT=0 -s LOG_LEVEL=CRITICAL"
)
