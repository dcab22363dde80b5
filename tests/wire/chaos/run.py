"""Runs a plan."""

import sqlite3
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import asdict

from tests.wire.processes import Running, around

AT_MOST = 75.0
"""Seconds after which a crawl hangs."""


def order_of(plan, worker, around, *, resumes):
    store = f"{around.uri}?timeout=1" if plan.outage else around.uri
    settings = {"LOG_LEVEL": "INFO", **plan.settings, "REP_STORE": store}
    if "JOBDIR" in settings:
        settings["JOBDIR"] = f"job-{worker}"
    if "HTTPCACHE_DIR" in settings:
        settings["HTTPCACHE_DIR"] = str(around.folder / f"cache-{worker}")

    def with_url(each):
        url = f"http://{each['address']}:{around.web.port}/{each['kind']}/{each['number']}"
        then = each.get("then")
        return {**each, "url": url, "then": then and with_url(then)}

    requests = [] if resumes else [with_url(each) for each in plan.requests[worker]]
    return {"mode": plan.mode, "settings": settings, "requests": requests, "at_most": AT_MOST}


@contextmanager
def sqlite_locked(folder):
    """Lock the file of the store."""
    with closing(sqlite3.connect(folder / "robots.sqlite", timeout=30)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.rollback()


@contextmanager
def redis_paused(redis):
    """Let Redis answer nothing."""
    redis.pause()
    yield
    redis.resume()


def stop_store(outage, stopped):
    """Stop the store for the time of the outage."""
    after, seconds = outage
    time.sleep(after)
    with stopped:
        time.sleep(seconds)


def run(plan):
    """Crawl; return the hosts' journal and the processes."""
    stories = {host.address: asdict(host)["story"] for host in plan.hosts.values()}
    with around(stories, plan.store) as own:
        (own.folder / "files").mkdir()  # FilesPipeline fails if two workers make it at once

        def start(worker, stop=None, *, resumes=False):
            order = order_of(plan, worker, own, resumes=resumes)
            return Running(order, own.folder, worker, stop, resumes=resumes)

        running = [start(n, None if n else plan.stop) for n in range(len(plan.requests))]
        if plan.outage is not None:
            stopped = (
                sqlite_locked(own.folder) if plan.store == "sqlite" else redis_paused(own.redis)
            )
            outage = threading.Thread(target=stop_store, args=(plan.outage, stopped))
            outage.start()
        processes = [running[0].wait()]
        if processes[0].signal is not None:
            processes.append(start(0, resumes=True).wait())
        processes += [each.wait() for each in running[1:]]
        if plan.outage is not None:
            outage.join()
        return own.web.journal(), processes
