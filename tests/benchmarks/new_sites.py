"""Pages a second of crawls of sites that were never seen, by their latency in milliseconds.

    python -m tests.benchmarks.new_sites [--sites 1000] [--json FILE]

One server is all sites, over real sockets. It answers each request, for robots.txt and for the page
of a site alike, after the latency. Crawls run one after the other, in turns: without robots.txt, with
Scrapy's built-in middleware, and with scrapy-rep as it is installed, with a new store. A ratio is the
median of those of each round. Printed is also the ratio of the processor time of the whole crawls.
"""

import argparse
import resource
import statistics
import tempfile

from tests.benchmarks import results
from tests.benchmarks.broad_crawl import CRAWLS, RULES, crawl, host
from tests.crawling.web import PAGE, Web, answer, robots

LATENCIES = (0.05, 0.1, 0.3, 1.0)
"""Of an answer, in seconds."""


def run(name, latency, options):
    """Return the pages of a second, and the processor time of a page in microseconds."""
    wait = ["wait", latency]
    with Web() as web, tempfile.TemporaryDirectory() as folder:
        rules, paths = [wait, *robots(RULES["robots"])], {"*": [[wait, *answer(200, PAGE)]]}
        sites = [web.site(rules, host=host(n), paths=paths) for n in range(options.sites)]
        settings = {
            **CRAWLS[name],
            "REP_STORE": f"sqlite:///{folder}/robots.sqlite",
            "CONCURRENT_REQUESTS": 100,
            "DNSCACHE_ENABLED": False,
        }
        result = crawl([site.url() for site in sites], settings)
    assert result["results"] == {"page": options.sites}, result["results"]
    return options.sites / result["seconds"], 1e6 * result["cpu"] / options.sites


def measure(latency, options):
    rates, costs = results.in_turns(
        CRAWLS, options.rounds, lambda name: run(name, latency, options)
    )
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ratio, of_cost = (results.median_ratio(each, "ours", "built-in") for each in (rates, costs))
    row = {"latency": round(1000 * latency), **medians, "ours/built-in": ratio}
    results.show({**row, "(processor)": of_cost})
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    results.add_option(parser)
    options = parser.parse_args()
    # Connections to all sites are kept.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    rows = [measure(latency, options) for latency in LATENCIES]
    results.write(options.json, __spec__.name, rows)


if __name__ == "__main__":
    main()
