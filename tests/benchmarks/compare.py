"""The engine beside Protego: time and memory, as ratios.

    python -m tests.benchmarks.compare [--rounds N] [--only parse|urls|rules|memory] [--json FILE]

Engines take turns within each round, so that a noisy moment of the machine hits all of them; times
are of the processor, and a row's ratio is the median of the rounds' ratios. 'Ours' is what the
middleware does: ``RobotsTxt.parse(body).rules_for("Scrapy")``, then
``rules.verdict_for(target_of(url))``.
"""

import argparse
import gc
import random
import statistics
import time
import tracemalloc

from protego import Protego

from scrapy_rep.protocol import RobotsTxt, target_of
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from tests.benchmarks import results
from tests.protocol import corpus

AGENT = "Scrapy"


class Ours:
    @staticmethod
    def prepare(body):
        return body

    @staticmethod
    def parse(body):
        return RobotsTxt.parse(body).rules_for(AGENT)

    @staticmethod
    def allowed(rules, url):
        return rules.verdict_for(target_of(url)).allowed


class OfProtego:
    @staticmethod
    def prepare(body):
        return body.decode("utf-8", "ignore")

    @staticmethod
    def parse(text):
        robots = Protego.parse(text)
        robots.can_fetch("http://example.com/", AGENT)  # rules for one agent are ready
        return robots

    @staticmethod
    def allowed(robots, url):
        return robots.can_fetch(url, AGENT)


ENGINES = {"ours": Ours, "Protego": OfProtego}


def timed(function):
    gc.collect()
    gc.disable()
    start = time.process_time()
    function()
    elapsed = time.process_time() - start
    gc.enable()
    return elapsed


def report(title, unit, scale, functions, rounds):
    """Run {engine: function} in turns; print, and return, each engine's median and its ratio to ours."""
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            times[name].append(timed(function))
    return line(title, unit, scale, times)


def line(title, unit, scale, times):
    ratio = results.median_ratio(times, "Protego", "ours")
    medians = {name: statistics.median(values) * scale for name, values in times.items()}
    cells = " | ".join(f"{name} {value:,.2f} {unit}" for name, value in medians.items())
    print(f"{title:<44} {cells} ({ratio:.1f}x)", flush=True)
    return {**medians, "Protego/ours": ratio}


def parse_rows(rounds):
    bodies = [body[:MAX_BODY_BYTES] for _, body, _ in corpus.read("files")]

    def work(engine):
        prepared = [engine.prepare(body) for body in bodies]

        def run():
            for body in prepared:
                engine.parse(body)

        return run

    functions = {name: work(engine) for name, engine in ENGINES.items()}
    report(f"parse {len(bodies):,} files", "ms", 1e3, functions, rounds)


def verdict_row(title, sites, rounds):
    """*sites*: (body, urls) each."""
    count = sum(len(urls) for _, urls in sites)

    def work(engine):
        ready = [(engine.parse(engine.prepare(body)), urls) for body, urls in sites]
        allowed = engine.allowed

        def run():
            for rules, urls in ready:
                for url in urls:
                    allowed(rules, url)

        run()  # whatever is built at the first use
        return run

    functions = {name: work(engine) for name, engine in ENGINES.items()}
    title = f"{title} ({count:,} verdicts)"
    return report(title, "us", 1e6 / count, functions, rounds)


def url_rows(rounds):
    sites = [(body, urls) for _, body, urls in corpus.read("sites")]
    verdict_row("verdict per real URL", sites, rounds)


WORDS = "shop cart user admin search tag page news item view list sort filter print img api".split()  # noqa: SIM905 - words


def made_up(count):
    """Return a file of *count* rules, 15 % with wildcards, and URLs of which some match."""
    rng = random.Random(1)

    def path(depth):
        return "".join(f"/{rng.choice(WORDS)}{rng.randrange(count)}" for _ in range(depth))

    rules, urls = ["User-agent: *"], []
    for _ in range(count):
        depth = rng.randint(1, 3)
        pattern = path(depth)
        if rng.random() < 0.15:
            pattern = rng.choice(
                [
                    f"/*{pattern}",
                    f"{pattern}/*.php$",
                    f"/*/{pattern[1:]}/",
                    f"/*?{pattern[1:]}=",
                    f"{pattern}*{rng.choice(WORDS)}",
                ]
            )
        rules.append(f"{rng.choice(['Disallow', 'Disallow', 'Allow'])}: {pattern}")
        if rng.random() < 200 / count:
            below = pattern.replace("*", "x").removesuffix("$")
            urls += [f"https://example.com{below}/y", f"https://example.com{path(2)}?q={count}"]
    return "\n".join(rules).encode(), urls


def rule_rows(rounds):
    rows = []
    for count in (10, 100, 300, 1_000, 5_000, 20_000):
        body, urls = made_up(count)
        urls *= max(1, 400 // len(urls))
        row = verdict_row(f"verdict, {count:,} rules", [(body, urls)], rounds)
        rows.append({"rules": count, **row})
    return rows


def memory_row(size, bodies):
    held = {}
    for name, engine in ENGINES.items():
        prepared = [engine.prepare(body) for body in bodies]
        gc.collect()
        tracemalloc.start()
        kept = [engine.parse(body) for body in prepared]
        for rules in kept:
            engine.allowed(rules, "https://example.com/some/path?query")
        gc.collect()
        held[name] = [tracemalloc.get_traced_memory()[0] / len(bodies)]
        tracemalloc.stop()
    title = f"memory per origin ({len(bodies):,} origins, {size})"
    return {"size": size, **line(title, "B", 1, held)}


def memory_rows(_):
    """What is held of all files, then of the smallest tenth, of the next, and so on."""
    bodies = [body for _, body, _ in corpus.read("sites")]
    rows = [memory_row("all", bodies)]
    bodies.sort(key=len)
    for part in range(10):
        some = bodies[part * len(bodies) // 10 : (part + 1) * len(bodies) // 10]
        rows.append(memory_row(len(some[len(some) // 2]), some))
    return rows


# First: what the interpreter keeps of the others, and makes larger, is not theirs.
ROWS = {"memory": memory_rows, "parse": parse_rows, "urls": url_rows, "rules": rule_rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=ROWS)
    results.add_option(parser)
    options = parser.parse_args()
    if options.json and options.only not in {"rules", "memory"}:
        parser.error("--json: only of --only rules and --only memory")
    names = [options.only] if options.only else ROWS
    if corpus.folder() is None:
        print("no corpus at ../shared/corpus or $REP_CORPUS: only made-up files are measured")
        names = ["rules"]
    for name in names:
        results.write(options.json, __spec__.name, ROWS[name](options.rounds))


if __name__ == "__main__":
    main()
