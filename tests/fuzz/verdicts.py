"""Compare the engine with the slow reference on made-up files, as many as there is time for.

    python -m tests.fuzz.verdicts [EXAMPLES | --minutes N] [--seed N]

Minutes are of the processor.
Stops at the first file and URL on which they disagree, or on which the engine raises.
"""

import argparse
import random
import time

from scrapy_rep.protocol import RobotsTxt
from scrapy_rep.protocol.lexer import lex
from tests.protocol import made_up, reference

PIECES = [*made_up.PIECES, "index.html", "/index.htm", "index.htm$", "#", "ÿ"]
FIELDS = (
    "allow disallow Disallow Allow ALLOW disalow allows sitemap Crawl-delay x # Disallow#".split()  # noqa: SIM905 - pieces to read as one
)
AGENT_FIELDS = ["user-agent", "User-agent", "useragent", "user agent", "USER-AGENTS", " User-Agent"]
AGENTS = ["a", "b", "a-b", "A/1.0", "a1", "a.b", "*", "* x", "**", "", "*a", "a b", "*\t"]
COLONS = [":", ":", ":", ": ", " : ", " ", "", "::", "\t"]
ENDS = ["\n"] * 5 + ["\r\n", "\r", "\n\n", " # c\n", "#\n", "\0x\n", " \x0b\n", "\x85\n"]
TOKENS = ["a", "b", "a-b", "a1", "a.b", "A", "*", ""]


def text(rng, most):
    return made_up.joined(rng, most, PIECES)


def line(rng):
    chance = rng.random()
    if chance < 0.25:
        parts = rng.choice(AGENT_FIELDS), rng.choice(COLONS), rng.choice(AGENTS)
    elif chance < 0.95:
        parts = (
            rng.choice(FIELDS),
            rng.choice(COLONS),
            rng.choice(["/", "/", "", "*"]) + text(rng, 7),
        )
    else:
        parts = (text(rng, 5),)
    return "".join(parts) + rng.choice(ENDS)


def body(rng):
    if rng.random() < 0.02:
        return rng.randbytes(rng.randrange(300))
    start = rng.choice(["", "user-agent: *\n", "user-agent: a\n", "\ufeff"])
    lines = (line(rng) for _ in range(rng.choice([3, 8, 20, 20, 60, 300])))
    found = (start + "".join(lines)).encode("utf-8")
    if rng.random() < 0.1 and found:
        at = rng.randrange(len(found))
        found = found[:at] + rng.randbytes(1) + found[at + 1 :]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", type=int, nargs="?", default=100_000)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    compared = decided = files = 0
    start = time.process_time()

    def is_done():
        if options.minutes is not None:
            return time.process_time() - start >= 60 * options.minutes
        return compared >= options.examples

    while not is_done():
        robots_txt = body(rng)
        files += 1
        robots = RobotsTxt.parse(robots_txt)
        assert [
            (n, k.value, v)
            for n, k, _, v, _ in lex(robots_txt)
            if k.value not in ("empty", "invalid")
        ] == [(n, k, v.encode("latin-1")) for n, k, v in reference.lines_of(robots_txt)], robots_txt
        tokens = rng.sample(TOKENS, rng.randrange(3))
        for _ in range(4):
            path = "/" + text(rng, 8).replace("#", "")
            verdict = robots.verdict(f"http://h{path}", *tokens)
            expected = reference.verdict(robots_txt, path, tokens)
            octets = len(verdict.rule.pattern) if verdict.rule else None
            assert (verdict.allowed, octets) == expected, (robots_txt, path, tokens)
            compared += 1
            decided += verdict.rule is not None
    took = time.process_time() - start
    print(f"{compared:,} verdicts on {files:,} files agree ({decided:,} by a rule), {took:.0f} s")


if __name__ == "__main__":
    main()
