"""A search for the worst that a site can send, by climbing hills: ``make bench`` doesn't run it.

    python -m tests.benchmarks.search [--minutes N] [--seed N] [--only STAGE]

A *recipe* is a few pieces of text, each repeated; what is made of it has the size of the largest file
that counts. Recipes are made up at random and changed a little at a time; what takes longer is kept.
Minutes are of the processor, for all stages together. Printed is the worst of each stage, beside
the parse of a plain file, and the peak of its memory. Files of overrides take the way of parse.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import random
import time
import tracemalloc

from scrapy.settings import Settings

from scrapy_rep.decision.spellings import Spellings, verdict_of_rules
from scrapy_rep.fetch.decoding import decode
from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.crawl_delay import DELAY_FIELDS, delay_in
from scrapy_rep.protocol.explain import explain
from scrapy_rep.protocol.freshness import freshness_lifetime, retry_after
from scrapy_rep.protocol.limits import MAX_BODY_BYTES
from scrapy_rep.protocol.lint import lint
from scrapy_rep.protocol.meta_tags import of_header, of_meta
from scrapy_rep.protocol.outcome import Available, Evidence
from scrapy_rep.protocol.record import Record
from scrapy_rep.protocol.site_file import SiteFile
from scrapy_rep.protocol.soft404 import is_not_found_page
from tests.protocol.hostile import PLAIN

HEADER_BYTES = 65_536  # Twisted takes a header of 16 KiB, h2 and aiohttp no more than this
PIECES = [
    *"a/*$%#:;,.-_=<>&!?'\xff\0\r\n\t\v\x85", "ab", "abc", "%41", "%2f", "%2F",
    " ", "  ", "\n\n", "user-agent", "useragent", "user agent", "allow", "disallow", "disa", "dissalow",
    "sitemap", "site-map", "crawl-delay", "request-rate", "index.htm", "/index.html", "1/1", "0900-1000",
    ":*\n", ": x\n", ":/", ":\n", ": /a\n", "allow:/", "user-agent:*\n", "user-agent:x\n", "disallow:*",
    "noindex", "nofollow", "unavailable_after: ", "max-age=", "no-cache", "Friday, 25-Jun-10 15:00:00 PST",
    "<script", "</script", "<!--", "-->", "<meta ", "&#39;", "&lt;", "&", "<pre>", "<html>", "googlebot:",
    "Fri, 01 Jan 2027 00:00:00 GMT", "9" * 12, "-0700", "(", ")", '"', "a*b", "*a*", "*!**", "a" * 30,
]  # fmt: skip


class OtherHandler:
    """A download handler that nothing is known of: all forms of a URL are judged."""


SPELLINGS = Spellings(Settings({"DOWNLOAD_HANDLERS": {"https": OtherHandler}}))


def record(body):
    evidence = Evidence(at=1.0, url="https://h/robots.txt", size=len(body))
    copy = Available(body, evidence)
    return Record(SiteFile.from_key("https://h"), copy, copy).encode()


def rules_and_url(length):
    """Return what makes rules of a file, and a URL of the file's own letters."""

    def make(body):
        text = body[-length - 99 :].decode("latin-1").translate(str.maketrans("", "", "\n\r*#"))
        return RobotsTxt.parse(body).rules_for("x"), f"https://h/{text}"

    return make


def judge(made):
    verdict_of_rules(*made, SPELLINGS)


def header(body):
    return body[:HEADER_BYTES].decode("latin-1")


def same(body):
    return body


# What is made of the data, and what is measured.
STAGES = {
    "decode": (
        lambda body: gzip.compress(body, 1),
        lambda data: decode(data, ["gzip"], MAX_BODY_BYTES, complete=True),
    ),
    "parse, rules_for": (same, lambda body: RobotsTxt.parse(body).rules_for("x")),
    "verdict, short URL": (rules_and_url(300), judge),
    "verdict, long URL": (rules_and_url(8_000), judge),
    "delays": (
        same,
        lambda body: delay_in(RobotsTxt.parse(body).fields_for("x", names=DELAY_FIELDS)),
    ),
    "sitemaps": (same, lambda body: RobotsTxt.parse(body).sitemaps),
    "groups": (same, lambda body: RobotsTxt.parse(body).groups),
    "group_for": (same, lambda body: RobotsTxt.parse(body).group_for("x")),
    "tags, header": (header, lambda text: of_header(text, ["x"], 0.0)),
    "tags, page": (header, lambda text: of_meta("robots", text, ["x"], 0.0)),
    "soft 404": (same, is_not_found_page),
    "max-age": (header, lambda text: freshness_lifetime(text, text, ttl=1, ttl_min=1, ttl_max=1)),
    "Retry-After": (header, lambda text: retry_after(text, 0.0)),
    "record": (record, lambda data: Record.decode(data, "https://h", max_size=MAX_BODY_BYTES)),
    "lint": (same, lint),
    "explain": (same, lambda body: explain(body, "/a", "x")),
}


def timed(function, value):
    gc.collect()
    start = time.process_time()
    function(value)
    return time.process_time() - start


def made_up(rng):
    """Return a recipe: a beginning, and parts with how often each is repeated in a block."""
    parts = [
        [
            "".join(rng.choices(PIECES, k=rng.choice([1, 1, 2, 3, 5]))),
            rng.choice([1, 1, 2, 30, 200]),
        ]
        for _ in range(rng.choice([1, 2, 3]))
    ]
    return [rng.choice(["", "user-agent:*\n", "user-agent:*\nallow:/"]), parts, rng.random() < 0.3]


def changed(recipe, rng):
    start, parts, numbered = recipe
    parts = [list(part) for part in parts]
    part = rng.choice(parts)
    match rng.randrange(7):
        case 0:
            part[0] += rng.choice(PIECES)
        case 1:
            part[0] = part[0][: rng.randrange(len(part[0]) + 1)] or rng.choice(PIECES)
        case 2:
            part[1] = rng.choice([1, 2, 30, 200, 3_000, 100_000])
        case 3:
            parts.insert(rng.randrange(3), [rng.choice(PIECES), rng.choice([1, 1, 30])])
        case 4:
            parts = parts[1:] or parts
        case 5:
            numbered = not numbered
        case 6:
            start = rng.choice(["", "user-agent:*\n", "user-agent:x\nallow:/", "\n"])
    return [start, parts, numbered]


def data_of(recipe):
    """Return what a recipe makes: with numbers, no two blocks are alike."""
    start, parts, numbered = recipe
    made, size, number = [start], len(start), 0
    while size < MAX_BODY_BYTES:
        block = "".join(text * min(times, MAX_BODY_BYTES // len(text)) for text, times in parts)
        number += 1
        if numbered:
            block = block.replace("a", f"{number:x}")
        elif not made[1:]:
            block *= MAX_BODY_BYTES // len(block) + 1
        made.append(block)
        size += len(block)
    return "".join(made).encode("latin-1")[:MAX_BODY_BYTES]


def worst_of(stage, seconds, rng):
    worst, of = 0.0, None
    began = time.process_time()
    here, best_here, tries = made_up(rng), 0.0, 0
    make, run = STAGES[stage]
    while time.process_time() - began < seconds:
        recipe = changed(here, rng) if best_here else here
        took = timed(run, make(data_of(recipe)))
        tries += 1
        if took > best_here:
            here, best_here, tries = recipe, took, 0
            if took > worst:
                worst, of = took, recipe
        elif tries > 25:
            here, best_here, tries = made_up(rng), 0.0, 0
    return of


def peak(run, value):
    gc.collect()
    tracemalloc.start()
    run(value)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=STAGES)
    options = parser.parse_args()
    stages = [options.only] if options.only else list(STAGES)
    print(f"{'stage':<20} {'worst':>9} {'x plain':>8} {'peak':>10}  recipe (seed {options.seed})")
    for stage in stages:
        rng = random.Random(f"{options.seed} {stage}")
        of = worst_of(stage, 60 * options.minutes / len(stages), rng)
        make, run = STAGES[stage]
        data, plain = make(data_of(of)), PLAIN(MAX_BODY_BYTES)
        took = min(timed(run, data) for _ in range(5))
        of_plain = min(timed(STAGES["parse, rules_for"][1], plain) for _ in range(5))
        print(
            f"{stage:<20} {took * 1e3:>6.1f} ms {took / of_plain:>7.1f}x {peak(run, data) / 2**20:>6.1f} MiB"
            f"  {of!r}",
            flush=True,
        )


if __name__ == "__main__":
    main()
