"""Robots.txt files and URLs made to be expensive."""

import itertools
import random
import string
from functools import cache

LETTERS = string.ascii_lowercase
URL_LENGTH = 8 * 1024


def fill(size, lines, start="user-agent: *\n"):
    """Return lines, one of the iterable after the other, up to a size in bytes."""
    parts, length = [start], len(start)
    for line in lines:
        length += len(line) + 1
        if length > size:
            break
        parts.append(line + "\n")
    return "".join(parts).encode()


def words(length):
    """Yield all words of a length."""
    return map("".join, itertools.product(LETTERS, repeat=length))


def PLAIN(size):
    return fill(size, (f"disallow: /{i:06}/page" for i in itertools.count()))


def shuffled(length, seed=1):
    rng = random.Random(seed)
    found = list(words(length))
    rng.shuffle(found)
    return found


def agents_and_rules(size):
    agents = fill(size // 2, (f"user-agent: bot{word}" for word in words(4)), "")
    return agents + fill(size // 2, (f"disallow: /{i}" for i in itertools.count()))


def repeated_agent(size):
    return fill(size, (f"user-agent: scrapy\nallow: /{i}" for i in itertools.count()), "")


def nested(size):
    return fill(size, (f"disallow: /{'a' * i}" for i in range(size)))


def nested_shuffled(size):
    rules = [f"disallow: /{'a' * i}" for i in range(int((2 * size) ** 0.5) - 20)]
    random.Random(1).shuffle(rules)
    return fill(size, rules)


def random_stars(size):
    rng = random.Random(1)
    return fill(size, ("allow:*" + "".join(rng.choices(LETTERS, k=16)) for _ in range(size)))


FILES = {
    "agents by the thousand, rules too": agents_and_rules,
    "our agent by the thousand": repeated_agent,
    "only user-agent lines": lambda size: fill(size, itertools.repeat("user-agent: scrapy"), ""),
    "only short user-agent lines": lambda size: fill(size, itertools.repeat("user-agent:a"), ""),
    "user-agent lines with notes between": lambda size: fill(
        size, itertools.repeat("user-agent: scrapy\nx:y\nz"), ""
    ),
    "user-agents within lines": lambda size: fill(
        size, itertools.repeat("x " + "user-agent: scrapy " * 800), ""
    ),
    "star rules, equal": lambda size: fill(size, itertools.repeat("disallow: /*a*b*c*d$")),
    "star rules, distinct": lambda size: fill(
        size, (f"disallow: /*{word}*x$" for word in words(4))
    ),
    "star rules of three letters": lambda size: fill(
        size, (f"allow:*{a}*{b}" for a in shuffled(3) for b in ("pq", "aab", "zz"))
    ),
    "star rules of two letters": lambda size: fill(
        size, (f"allow:*{a}*{b}*{c}" for a in words(2) for b in words(2) for c in words(1))
    ),
    "star rules of one letter": lambda size: fill(
        size, ("allow:*" + "*".join(word) + "*1" for word in words(4))
    ),
    "star rules of many parts": lambda size: fill(
        size, ("allow:*" + "*".join(["ab", "ba", "aa"] * 12) + "*" + word for word in words(4))
    ),
    "star rules of long parts": lambda size: fill(
        size, (f"allow:*{'a' * 45}{word}{'a' * 45}" for word in words(3))
    ),
    "star rules of very long parts": lambda size: fill(
        size, (f"allow:*{'a' * 150}{word}{'a' * 150}" for word in words(3))
    ),
    "star rules of parts of every length": lambda size: fill(
        size, (f"allow:*{'a' * i}*{'a' * i}b" for i in range(1, 1000))
    ),
    "star rules of parts that take long to find": lambda size: fill(
        size, (f"allow:*{'a' * (230 + i // 20)}b{'a' * (18 + i % 20)}" for i in range(size))
    ),
    "star rules of such parts, few": lambda size: fill(
        size, (f"allow:*{'a' * (1_220 + i // 16)}b{'a' * (i % 16)}" for i in range(255))
    ),
    "star rules of random parts": random_stars,
    "short star rules, carriage returns": lambda size: fill(
        size, (f"allow://*{i}\r" for i in range(size))
    ).replace(b"\r\n", b"\r"),
    "short star rules, bars": lambda size: fill(size, (f"allow:*|{i:x}" for i in range(size))),
    "short star rules, bars and NULs": lambda size: fill(
        size, (f"Allow /*|/*|{i}\0" for i in range(size))
    ),
    "star rules of an escape": lambda size: fill(size, (f"allow:*%2f{i:x}" for i in range(size))),
    "star rules of escapes alone": lambda size: fill(
        size, (f"allow:{'*' * i}%2f" for i in range(1, size))
    ),
    "stars between escapes": lambda size: fill(
        size, (f"allow:/{'*%2f' * 4_000}{i}" for i in range(size))
    ),
    "stars between escapes, few": lambda size: fill(
        size, (f"allow:/{'*%2f' * 500}{i}" for i in range(size))
    ),
    "escapes in queries": lambda size: fill(
        size, (f"allow:/?{'%2f' * 5}{i:x}" for i in range(size))
    ),
    "stars alone": lambda size: fill(size, (f"disallow: /{'*' * 600}{i}" for i in range(size))),
    "stars between letters": lambda size: fill(
        size, (f"allow:/{'a*' * 300}{i}" for i in range(size))
    ),
    "nested prefixes": nested,
    "nested prefixes, shuffled": nested_shuffled,
    "nested prefixes with stars": lambda size: fill(
        size, (f"disallow: /{'a' * i}{'*' * (i % 3)}" for i in range(size))
    ),
    "stars at the end": lambda size: fill(
        size, (f"allow:/{i}{'*' * (5 + i % 300)}" for i in range(size))
    ),
    "anchored": lambda size: fill(size, (f"allow:/{i:x}$" for i in range(size))),
    "long literals": lambda size: fill(
        size, (f"disallow: /a{i:03}{'x' * 1_999}" for i in range(size))
    ),
    "one endless line": lambda size: b"user-agent: *\ndisallow: /" + b"a" * (size - 25),
    "one endless comment": lambda size: b"#" * size,
    "short comments": lambda size: fill(size, itertools.repeat("#")),
    "rules with comments": lambda size: fill(size, itertools.repeat("allow:/#")),
    "long lines": lambda size: fill(size, itertools.repeat("disallow: /" + "a" * 16_700)),
    "only line ends": lambda size: b"\n" * size,
    "only carriage returns": lambda size: b"\r" * size,
    "only colons": lambda size: b":" * size,
    "lines of a colon": lambda size: b":\n" * (size // 2),
    "only NULs": lambda size: b"\0" * size,
    "lines of NUL": lambda size: b"\0\n" * (size // 2),
    "only spaces": lambda size: b" " * size,
    "spaces before user-agents": lambda size: (b" " * 500 + b"user-agent\n") * (size // 511),
    "lines of two words": lambda size: fill(size, (f"disallow /{i}" for i in itertools.count())),
    "lines of two letters": lambda size: fill(size, map("".join, itertools.cycle(words(2)))),
    "shortest rules": lambda size: fill(size, (f"allow:/{i:x}" for i in range(size))),
    "empty rules": lambda size: fill(size, itertools.repeat("allow:")),
    "unknown fields": lambda size: fill(size, (f"{i:x}:" for i in range(size))),
    "sitemaps": lambda size: fill(size, (f"sitemap:{i:x}" for i in range(size))),
    "escapes": lambda size: fill(size, (f"allow:/{'%41' * 5}{i:x}" for i in range(size))),
    "reserved escapes": lambda size: fill(size, (f"allow:/{'%2f' * 5}{i:x}" for i in range(size))),
    "only percents": lambda size: fill(size, itertools.repeat("allow:/" + "%" * 1000)),
    "bytes above ASCII": lambda size: (
        b"user-agent: *\n" + b"".join(b"allow:/\xff\xfe%d\n" % i for i in range(size // 17))
    ),
    "only bytes above ASCII": lambda size: b"user-agent: *\ndisallow: /" + b"\xff" * (size - 25),
    "dollars": lambda size: fill(size, itertools.repeat("allow:/" + "$" * 1000)),
    "index files": lambda size: fill(size, (f"allow:/{i:x}/index.htm" for i in range(size))),
    "one rule's beginning a line": lambda size: fill(size, itertools.repeat("disa")),
    "such lines between user-agents": lambda size: (
        fill(size - 13, itertools.repeat("disa"), "useragent:*\n") + b"useragentx:*\n"
    ),
    "blocks of such lines": lambda size: fill(
        size, itertools.repeat("user-agent:*\n" + "\n".join(["disa"] * 200))
    ),
    "fields without a value": lambda size: fill(size, itertools.repeat("allow")),
    "fields of two words and of one": lambda size: fill(
        size, itertools.repeat("useragent *\nallow ")
    ),
    "words, vertical tabs between": lambda size: fill(
        size, itertools.repeat("allow " + "a\v" * 1_000 + " b")
    ),
    "dollars and bytes above ASCII": lambda size: (
        b"user-agent: *\n" + (b"allow:/" + b"$\xff" * 1_000 + b"\n") * (size // 2_008)
    ),
    "such short lines": lambda size: b"user-agent: *\n" + b"allow:\xff$\n" * (size // 9),
    "escapes and slashes": lambda size: fill(size, itertools.repeat("allow:" + "/%41" * 500)),
    "one escape, and percents": lambda size: (
        fill(size, itertools.repeat("allow:/" + "%" * 1_000)) + b"allow:/%41"
    ),
    "lines of a letter": lambda size: fill(size, itertools.repeat("a")),
    "star rules that nearly match": lambda size: fill(
        size, ("allow:*!**" + word for word in shuffled(3))
    ),
    "HTML": lambda size: fill(size, itertools.repeat('  <p class="x">some: text</p>')),
}


@cache
def de_bruijn(alphabet, length):
    """Return a text with every word of a length in it once."""
    size = len(alphabet)
    word, sequence = [0] * (size * length), []

    def extend(position, period):
        if position > length:
            if length % period == 0:
                sequence.extend(word[1 : period + 1])
            return
        word[position] = word[position - period]
        extend(position + 1, period)
        for letter in range(word[position - period] + 1, size):
            word[position] = letter
            extend(position + 1, position)

    extend(1, 1)
    return "".join(alphabet[letter] for letter in sequence)


def URLS(body):
    """Return URLs, nearly all of 8 KiB, by kind; some are made of the file's own patterns."""
    patterns = [
        line.partition(b":")[2].strip(b" *$/").replace(b"*", b"")
        for line in body[-200_000:].split(b"\n")
    ]
    own = b"".join(reversed(patterns[-1000:])).decode("latin-1")
    parts = {
        "a": "a",
        "ab": "ab",
        "aab": "aab",
        "letters": LETTERS,
        "all pairs": de_bruijn(LETTERS, 2),
        "all triples": de_bruijn(LETTERS, 3),
        "all triples, back": de_bruijn(LETTERS, 3)[::-1],
        "four letters": de_bruijn("abcz", 6),
        "escapes": "%41",
        "percents": "%",
        "accents": "é",
        "stars": "*",
        "slashes": "/",
        "slashes of a query": "?/",
        "escapes of slashes": "%2F",
        "own patterns": own or "x",
    }
    room = URL_LENGTH - 20
    urls = {
        kind: "https://example.com/" + (part * (room // len(part) + 1))[:room]
        for kind, part in parts.items()
    }
    # In a shorter text than 2,500 characters str.find takes another way.
    return {**urls, "a, shorter": urls["a"][:2_490]}
