"""Broad crawls beside a crawl without robots.txt and beside Scrapy's built-in middleware.

    python -m tests.benchmarks.broad shares [--rounds N] [--shares 0 1 5 10 20] [--mode asyncio] [--json FILE]
    python -m tests.benchmarks.broad chain [--rounds N] [--at-most SECONDS]
    python -m tests.benchmarks.broad pop [--slots 100 1000 10000] [--json FILE]
    python -m tests.benchmarks.broad disk [--slots 100 10000 100000]
    python -m tests.benchmarks.broad memory [--slots 1000 100000]
    python -m tests.benchmarks.broad many [--origins 10000] [--mode asyncio]
    python -m tests.benchmarks.broad kill [--origins 2000] [--signal KILL|TERM]
    python -m tests.benchmarks.broad recovers [--mode asyncio]

Crawls of ``shares`` run one after the other, each alone with a web of its own, in turns: off, ours,
ours, off. A ratio is the median of the ratios of such neighbours, of pages a second and of pages a
second of processor time; the latter suffers less from what else the machine does. The built-in's
crawls end after ``--at-most`` seconds, with what they have then.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

from tests.benchmarks import results
from tests.benchmarks.broad_crawl import BUILTIN, OFF, OURS
from tests.benchmarks.broad_processes import crawl, start, web_of
from tests.benchmarks.broad_queue import disk, memory, pop

CRAWLS = {"off": OFF, "built-in": BUILTIN, "ours": OURS}
QUICK = {"REP_TIMEOUT": 5, "REP_RETRY_DELAY": 2, "REP_RETRY_DELAY_MAX": 4, "REP_DEFER_TIMEOUT": 20}
MIX = [
    *["rules"] * 11,
    *["missing"] * 4,
    *["slow"] * 2,
    "redirect",
    "recovers",
    "failing",
]


def shares(options):
    print(
        f"{options.origins} origins x {options.pages} pages, 10 ms a page, CONCURRENT_REQUESTS 16,"
        f" mode {options.mode}: healthy pages a second, and the ratio to ROBOTSTXT_OBEY=False"
        " on the healthy origins alone; the last ratio is of pages a second of processor time"
    )
    print(
        f"{'hanging':>8} {'off':>8} {'built-in':>9} {'ours':>8} {'built-in/off':>13} {'ours/off':>9}"
        f" {'(processor)':>12}"
    )
    rows = []
    for share in options.shares:
        every = round(100 / share) if share else 0
        stories = [
            "hang" if every and n % every == every // 2 else "rules" for n in range(options.origins)
        ]
        rates = {name: [] for name in CRAWLS}
        per_cpu = {name: [] for name in CRAWLS}
        for number in range(options.rounds):
            names = ["off", "ours"] if number % 2 == 0 else ["ours", "off"]
            if number < options.builtin_rounds:
                names.append("built-in")
            for name in names:
                rate, of_cpu = _rate(name, stories, options)
                rates[name].append(rate)
                per_cpu[name].append(of_cpu)
        median = {
            name: statistics.median(values) if values else float("nan")
            for name, values in rates.items()
        }
        ratio, of_cpu = (
            statistics.median(a / b for a, b in zip(values["ours"], values["off"], strict=True))
            for values in (rates, per_cpu)
        )
        print(
            f"{share:>6} % {median['off']:8.0f} {median['built-in']:9.1f} {median['ours']:8.0f}"
            f" {median['built-in'] / median['off']:13.3f} {ratio:9.3f} {of_cpu:12.3f}",
            flush=True,
        )
        rows.append({"hanging": share, **median, "ours/off": ratio, "ours/off (processor)": of_cpu})
    return rows


def _rate(name, stories, options):
    """Return the healthy pages of a second, and of a second of the processor."""
    healthy = [n for n, story in enumerate(stories) if story == "rules"]
    with web_of(stories) as web:
        result = crawl(
            web,
            CRAWLS[name],
            mode=options.mode,
            origins=healthy if name == "off" else list(range(len(stories))),
            paths=[f"/p/{page}" for page in range(options.pages)],
            stop_after=len(healthy) * options.pages,
            at_most=options.at_most,
        )
    pages = result["results"].get("page", 0)
    # Those that didn't come in time count with all of it.
    whole = pages == len(healthy) * options.pages
    return pages / (result["seconds"] if whole else options.at_most), pages / result["cpu"]


def chain(options):
    print(
        "a chain of ten pages on a healthy origin, beside a hanging one with 30 pages: seconds,"
        f" {options.at_most:g} for one that didn't end by then"
    )
    print(f"{'':>10} {'alone':>7} {'beside':>7} {'ratio':>7}")
    for name, settings in CRAWLS.items():
        rows = []
        for _ in range(options.builtin_rounds if name == "built-in" else options.rounds):
            seconds = []
            for hanging in ([], [1]):
                with web_of(["rules", "hang"]) as web:
                    result = crawl(
                        web,
                        settings,
                        mode=options.mode,
                        origins=hanging,
                        paths=[f"/p/{page}" for page in range(30)],
                        chain=[0, 10],
                        at_most=options.at_most,
                    )
                    # One that didn't end in time counts with all of it.
                    seconds.append(result["chain"] or options.at_most)
            rows.append(seconds)
        alone = statistics.median(row[0] for row in rows)
        beside = statistics.median(row[1] for row in rows)
        print(f"{name:>10} {alone:7.2f} {beside:7.2f} {beside / alone:7.2f}", flush=True)


def many(options):
    order = {
        "mode": options.mode,
        "origins": list(range(options.origins)),
        "paths": ["/p/1", "/private/2"],
    }
    memory = {}
    for name, settings in {"ours": {**OURS, **QUICK}, "off": OFF}.items():
        with web_of([*MIX, *MIX, *MIX, *MIX, *MIX[:-1], "hang"], 0.001) as web:
            began = time.monotonic()
            result = crawl(web, settings, **order)
            seconds = time.monotonic() - began
            journal = web.journal()
        memory[name] = result["memory"]
        if name == "ours":
            _report(options.origins, result, journal, seconds)
    print(
        "resident memory in MiB, at the start, after each quarter of the requests, and at the end"
    )
    for name, samples in memory.items():
        total = samples[-1][0]
        quarters = [next(m for n, m in samples if n >= part * total / 4) for part in range(4)]
        print(f"{name:>5}: " + ", ".join(f"{mib:.0f}" for mib in (*quarters, samples[-1][1])))


def _report(origins, result, journal, seconds):
    print(
        f"{origins} origins, 2 requests each, in {seconds:.0f} s\n"
        f"origins asked for robots.txt: {journal['asked']}, robots.txt requests: {journal['robots']}"
        f" (more than one for an origin that answered at once: {journal['asked twice']})\n"
        f"pages on the wire: {journal['pages']}, of them disallowed: {journal['wrong']}\n"
        f"what came of the requests: {result['results']}\n"
        f"requests {2 * origins} - accounted for {sum(result['results'].values())}"
        f" = {2 * origins - sum(result['results'].values())}\n"
        f"deferred origins: {result['stats'].get('robotstxt/deferred', 0)},"
        f" finish reason: {result['stats']['finish_reason']}"
    )


def kill(options):
    stories = [*MIX, *MIX[:-1], "hang"]
    queues = {
        "ours": {**OURS, **QUICK},
        "Scrapy's queue, our middleware": {
            **OURS,
            **QUICK,
            "REP_UNREACHABLE_ACTION": "drop",
            "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
        },
    }
    number = getattr(signal, f"SIG{options.signal}")
    print(
        f"{options.origins} origins, 2 requests each, JOBDIR; SIG{options.signal} after"
        f" {options.after} outcomes, then the same command again"
    )
    for name, settings in queues.items():
        with web_of(stories, 0.001) as web, tempfile.TemporaryDirectory() as folder:
            accounts = Path(folder, "accounts")
            accounts.touch()
            order = {
                "mode": options.mode,
                "origins": list(range(options.origins)),
                "paths": ["/p/1", "/private/2"],
                "accounts": str(accounts),
            }
            settings_ = {**settings, "JOBDIR": str(Path(folder, "job"))}
            process = start(web, settings_, **order)
            while len(accounts.read_text().splitlines()) < options.after:
                time.sleep(0.05)
                if process.poll() is not None:
                    break
            os.kill(process.pid, number)
            process.communicate()
            first = accounts.read_text().splitlines()
            second = crawl(web, settings_, **order)
            outcomes = [line.split("\t")[0] for line in accounts.read_text().splitlines()]
            journal = web.journal()
        urls = {*outcomes}
        print(
            f"{name}: {len(first)} outcomes before, {len(outcomes) - len(first)} after;"
            f" requests {2 * options.origins}, accounted for {len(urls)},"
            f" lost {2 * options.origins - len(urls)}, twice {len(outcomes) - len(urls)};"
            f" disallowed on the wire {journal['wrong']};"
            f" second crawl {second['stats']['finish_reason']}",
            flush=True,
        )


def recovers(options):
    with web_of(["late", "rules"]) as web:
        result = crawl(
            web,
            OURS,
            mode=options.mode,
            origins=[0, 1],
            paths=[f"/{path}/{n}" for n in range(25) for path in ("p", "private")],
        )
        journal = web.journal()
    print(
        "an origin that answers 503 for 20 seconds, then its rules, beside one that has them:"
        " 25 allowed and 25 disallowed pages each, default settings\n"
        f"{result['results']}, after {result['seconds']:.0f} s; robots.txt requests"
        f" {journal['robots']}, pages on the wire {journal['pages']}, disallowed {journal['wrong']}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = {f.__name__: f for f in (shares, chain, pop, disk, memory, many, kill, recovers)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("--mode", choices=["asyncio", "select", "none"], default="asyncio")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--builtin-rounds", type=int, default=1)
    parser.add_argument("--shares", type=int, nargs="+", default=[0, 1, 5, 10, 20])
    parser.add_argument("--at-most", type=float, default=60, help="seconds of a crawl")
    parser.add_argument("--origins", type=int)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--slots", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--at-most-slots", type=int, default=100, help="of Scrapy's on disk")
    parser.add_argument("--signal", choices=["KILL", "TERM"], default="KILL")
    parser.add_argument("--after", type=int, default=500, help="outcomes before the signal")
    results.add_option(parser)
    options = parser.parse_args()
    if options.json and options.command not in {"shares", "pop"}:
        parser.error("--json: only of shares and pop")
    if options.origins is None:
        options.origins = {"shares": 200, "kill": 2000}.get(options.command, 10_000)
    rows = commands[options.command](options)
    if options.json:
        results.write(options.json, __spec__.name, rows)


if __name__ == "__main__":
    main()
