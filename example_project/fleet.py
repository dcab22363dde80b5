"""Crawls two hundred origins with a fleet of processes, and counts what reached them.

Starts a Redis and the fleet's web, then the workers: ``scrapy crawl fleet`` with
``example_project.fleet_settings``. Ends with a status other than 0 where a page reached the web
that its robots.txt disallows, or a robots.txt was asked for more often than once (and once more
for every worker that was killed).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from pathlib import Path

from fleet_web import ASKING, DELAY, DOWN, DOWN_SECONDS

HERE = Path(__file__).resolve().parent

# All origins are one host to Scrapy, and this one is ours.
SETTINGS = ["CONCURRENT_REQUESTS_PER_DOMAIN=32", "CONCURRENT_REQUESTS=32", "LOG_LEVEL=WARNING"]


def main() -> int:
    """Run the fleet as told on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=["redis", "sqlite"], default="redis")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--kill", type=float, metavar="SECONDS", help="kill a worker every so often"
    )
    parser.add_argument("--kills", type=int, default=5, help="how many of them")
    parser.add_argument("--again", action="store_true", help="crawl it all a second time")
    parser.add_argument("-s", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        print(f"Starting a Redis and the web of the fleet; robots.txt in {options.store} ...")
        port = start_redis(stack, directory)
        web, origins = start_web(stack)
        fleet = Fleet(options, directory, port, origins)
        failed = False
        before = None
        for turn in range(2 if options.again else 1):
            if turn:
                print("\nThe same again, within the day:", flush=True)
                forget_requests(port)
            reports, kills = fleet.crawl()
            web.stdin.write("\n")
            web.stdin.flush()
            journal = json.loads(web.stdout.readline())
            counts = {
                name: sum(site[name] for site in journal)
                for name in ("robots", "pages", "disallowed")
            }
            # One that can't be reached is asked again.
            counts["robots"] -= max(0, journal[DOWN]["robots"] - 1)
            seen = counts
            if before is not None:
                seen = {name: counts[name] - before[name] for name in counts}
            before = counts
            tell(reports, seen, len(origins), kills)
            if not turn:
                tell_of_sites(journal)
            if kills:
                twice = sum(site["robots"] > 1 for site in journal)
                never = sum(site["robots"] == 0 for site in journal)
                print(f"robots.txt asked for again    {twice:6}")
                # scrapy-redis loses what a worker that is killed had from the queue.
                print(f"origins never reached         {never:6}", flush=True)
            allowed = kills + (0 if turn else len(origins))
            failed = failed or seen["disallowed"] > 0 or seen["robots"] > allowed
        web.stdin.close()
        return 1 if failed else 0


def start_redis(stack: ExitStack, directory: Path) -> int:
    """Start a Redis of our own; return its port."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        sys.exit("There is no redis-server on the PATH: apt-get install redis-server")
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    redis = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    stack.callback(redis.wait)
    stack.callback(redis.kill)
    for _ in range(200):
        with closing(socket.socket()) as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return port
        time.sleep(0.02)
    sys.exit("redis-server does not answer")


def start_web(stack: ExitStack) -> tuple[subprocess.Popen[str], list[str]]:
    """Start the web; return its process and its origins."""
    web = subprocess.Popen(
        [sys.executable, str(HERE / "fleet_web.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    stack.callback(web.wait)
    stack.callback(web.kill)
    return web, json.loads(web.stdout.readline())


def forget_requests(port: int) -> None:
    """Empty the queue and the dupefilter, and leave robots.txt alone."""
    import redis

    with closing(redis.Redis(port=port)) as client:
        client.delete("fleet:requests", "fleet:dupefilter")


class Fleet:
    """The workers, and who kills them."""

    def __init__(
        self, options: argparse.Namespace, directory: Path, port: int, origins: list[str]
    ) -> None:
        self.options = options
        self.directory = directory
        self.origins = origins
        self.started = 0
        redis = f"redis://127.0.0.1:{port}/0"
        store = redis if options.store == "redis" else f"sqlite:///{directory}/robots.sqlite"
        self.environment = {
            **os.environ,
            "SCRAPY_SETTINGS_MODULE": "example_project.fleet_settings",
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            # scrapy-redis calls Scrapy in ways that newer versions warn of.
            "PYTHONWARNINGS": "ignore",
            "FLEET_REDIS": redis,
            "FLEET_STORE": store,
        }

    def crawl(self) -> tuple[dict[str, dict[str, int]], int]:
        """Crawl until the queue is empty; return the workers' reports, and how many were killed."""
        workers = dict(self.new_worker() for _ in range(self.options.workers))
        reports: dict[str, dict[str, int]] = {}
        kills = 0
        began = killed = time.monotonic()
        while workers:
            time.sleep(0.05)
            now = time.monotonic()
            period = self.options.kill
            if period and kills < self.options.kills and now - max(killed, began + 1.5) >= period:
                name = random.choice(list(workers))  # noqa: S311 - nobody's secret
                workers.pop(name)[0].kill()
                kills, killed = kills + 1, now
                reports[name] = {"killed": 1}
                workers.update([self.new_worker()])
            for name, (process, report) in list(workers.items()):
                if process.poll() is not None:
                    del workers[name]
                    if process.returncode:
                        sys.exit(f"worker {name} ended with status {process.returncode}")
                    reports[name] = json.loads(report.read_text(encoding="utf-8"))
        print(f"The crawl took {time.monotonic() - began:.1f} s.")
        return reports, kills

    def new_worker(self) -> tuple[str, tuple[subprocess.Popen[bytes], Path]]:
        """Start a worker."""
        self.started += 1
        name = str(self.started)
        report = self.directory / f"report-{name}"
        first = self.origins[50 * self.started % len(self.origins)]
        command = ["scrapy", "crawl", "fleet", "-a", f"start={first}/0", "-a", f"report={report}"]
        for setting in [*SETTINGS, *self.options.settings]:
            command += ["-s", setting]
        process = subprocess.Popen([sys.executable, "-m", *command], env=self.environment, cwd=HERE)
        return name, (process, report)


COLUMNS = {
    "pages": "response_received_count",
    "robots.txt fetched": "robotstxt/request_count",
    "from the store": "robotstxt/store/found",
    "waited for another": "robotstxt/store/waited_for_other_worker",
    "dropped": "robotstxt/forbidden",
    "errors": "log_count/ERROR",
}


def tell(
    reports: dict[str, dict[str, int]], counts: dict[str, int], origins: int, kills: int
) -> None:
    """Print what each worker did, and what reached the web."""
    line = "{:>8}" + "".join(f"  {{:>{len(name)}}}" for name in COLUMNS)
    print("\n" + line.format("worker", *COLUMNS))
    for name, stats in sorted(reports.items(), key=lambda item: int(item[0])):
        values = [stats.get(stat, 0) for stat in COLUMNS.values()]
        killed = "killed" in stats
        print(f"{name:>8}  killed" if killed else line.format(name, *values))
    print(f"\norigins                       {origins:6}")
    print(f"robots.txt requests           {counts['robots']:6}")
    print(f"workers killed                {kills:6}")
    print(f"pages                         {counts['pages']:6}")
    print(f"disallowed pages on the wire  {counts['disallowed']:6}", flush=True)


def tell_of_sites(journal: list[dict[str, float]]) -> None:
    """Print what the sites saw that are not as the others are."""
    print(f"\n{'site':<28}  {'pages':>6}  {'smallest gap':>12}  {'lost requests':>13}")
    rows = [
        (f"asks for {DELAY} s", journal[ASKING], f"{journal[ASKING]['gap']:.2f} s"),
        (f"down for {DOWN_SECONDS} s", journal[DOWN], ""),
    ]
    for name, site, gap in rows:
        print(f"{name:<28}  {site['pages']:>6}  {gap:>12}  {site['lost']:>13}")
    others = [site for n, site in enumerate(journal) if n not in {ASKING, DOWN}]
    pages, lost = (sum(site[name] for site in others) for name in ("pages", "lost"))
    print(f"{'all others':<28}  {pages:>6}  {'':>12}  {lost:>13}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
