"""Where the engine and Protego disagree about real sites, by kind.

    python -m tests.fuzz.differential

Each URL of the corpus is asked for four crawlers. Since real URLs meet few rules, each rule of a
site is also made into URLs that it should match ("made of rules"). A disagreement is of the kind
whose text has to be taken out of the file for Protego to agree. docs/yardstick.rst explains the
kinds, and settles each by the documents.
"""

import random
import re
from collections import Counter, defaultdict
from functools import lru_cache

from protego import Protego

from scrapy_rep.protocol import RobotsTxt
from tests.protocol import corpus

CRAWLERS = [("Scrapy",), ("Googlebot",), ("Googlebot-Image", "Googlebot"), ("bingbot",)]
PROBES_PER_SITE = 40

KINDS = {
    "byte order mark": r"\A\ufeff",
    "other line between user-agent lines": r"(?im)^[ \t]*(crawl-delay|request-rate).*$",
    "full URL as a pattern": r"(?im)^[ \t]*(dis)?allow[ \t]*:[ \t]*https?://.*$",
    "index.htm": r"(?im)^[ \t]*allow[ \t]*:.*/index.html?[ \t]*$",
    "$ as a character": r"(?im)^[ \t]*(dis)?allow[ \t]*:.*\$.*$",
    "escape of a reserved character": r"(?im)^[ \t]*(dis)?allow[ \t]*:.*%.*$",
    "no slash at the start": r"(?im)^[ \t]*(dis)?allow[ \t]*:[ \t]*[^/*\s].*$",
}


@lru_cache(8)
def without(text, kind):
    return Protego.parse(re.sub(KINDS[kind], "", text))


def kind_of(text, url, token, allowed):
    for kind in KINDS:
        if without(text, kind).can_fetch(url, token) == allowed:
            return kind
    return "not explained"


def probes(robots, tokens, host, rng):
    group = robots.group_for(*tokens)
    rules = group.rules if group else ()
    for rule in rng.sample(rules, min(len(rules), PROBES_PER_SITE)):
        path = rule.raw.removesuffix("$").replace("*", rng.choice(["", "x"]))
        path = path if path.startswith("/") else f"/{path}"
        yield f"https://{host}{path}{rng.choice(['', 'x', '/'])}"


def main():
    rng = random.Random(1)
    asked, kinds, sites = Counter(), Counter(), defaultdict(set)
    for host, body, urls in corpus.read("sites"):
        robots, text = RobotsTxt.parse(body), body.decode("utf-8", "ignore")
        protego = Protego.parse(text)
        for tokens in CRAWLERS:
            made = list(probes(robots, tokens, host, rng)) if tokens == ("Scrapy",) else []
            for source, some in (("real", urls), ("made of rules", made)):
                for url in some:
                    asked[source] += 1
                    verdict = robots.verdict(url, *tokens)
                    if verdict.allowed == protego.can_fetch(url, tokens[0]):
                        continue
                    kind = kind_of(text, url, tokens[0], verdict.allowed)
                    kinds[source, kind] += 1
                    sites[source, kind].add(host)
    for source, count in asked.items():
        different = sum(n for (of, _), n in kinds.items() if of == source)
        print(f"{source}: {count:,} verdicts, {different:,} differ")
    print(f"\n{'URLs':<15} {'kind':<46} {'verdicts':>8} {'sites':>6}")
    for (source, kind), count in sorted(kinds.items()):
        print(f"{source:<15} {kind:<46} {count:>8,} {len(sites[source, kind]):>6,}")


if __name__ == "__main__":
    main()
