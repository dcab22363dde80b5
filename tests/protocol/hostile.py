"""Robots.txt files and URLs made to be expensive."""

import itertools
import random
import string

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
    return map("".join, itertools.product(LETTERS, repeat=length))


def shuffled(length, seed=1):
    rng = random.Random(seed)
    found = list(words(length))
    rng.shuffle(found)
    return found


def repeated(line, start="user-agent: *\n"):
    return lambda size: fill(size, itertools.repeat(line), start)


def numbered(line):
    return lambda size: fill(size, map(line.format, range(size)))


def worded(line, *word_lists):
    return lambda size: fill(size, (line.format(*some) for some in itertools.product(*word_lists)))


def agents_and_rules(size):
    agents = fill(size // 2, (f"user-agent: bot{word}" for word in words(4)), "")
    return agents + fill(size // 2, (f"disallow: /{i}" for i in itertools.count()))


def nested_shuffled(size):
    rules = [f"disallow: /{'a' * i}" for i in range(int((2 * size) ** 0.5) - 20)]
    random.Random(1).shuffle(rules)
    return fill(size, rules)


def random_stars(size):
    rng = random.Random(1)
    return fill(size, ("allow:*" + "".join(rng.choices(LETTERS, k=16)) for _ in range(size)))


def of_lengths(line, first=0):
    return lambda size: fill(size, map(line, range(first, size)))


FILES = {
    "agents by the thousand, rules too": agents_and_rules,
    "our agent by the thousand": lambda size: fill(
        size, map("user-agent: scrapy\nallow: /{}".format, range(size)), ""
    ),
    "only user-agent lines": repeated("user-agent: scrapy", ""),
    "user-agent lines with notes between": repeated("user-agent: scrapy\nx:y\nz", ""),
    "user-agents within lines": repeated("x " + "user-agent: scrapy " * 800, ""),
    "star rules, equal": repeated("disallow: /*a*b*c*d$"),
    "star rules, distinct": worded("disallow: /*{}*x$", list(words(4))),
    "star rules of one letter": worded("allow:*{}*{}*{}*{}*1", *[LETTERS] * 4),
    "star rules of many parts": worded("allow:*" + "ab*ba*aa*" * 12 + "{}", list(words(4))),
    "star rules of long parts": worded(f"allow:*{'a' * 45}{{}}{'a' * 45}", list(words(3))),
    "star rules of parts of every length": lambda size: fill(
        size, (f"allow:*{'a' * i}*{'a' * i}b" for i in range(1, 1000))
    ),
    "star rules of parts that take long to find": of_lengths(
        lambda i: f"allow:*{'a' * (230 + i // 20)}b{'a' * (18 + i % 20)}"
    ),
    "star rules of random parts": random_stars,
    "short star rules, bars and NULs": numbered("Allow /*|/*|{}\0"),
    "star rules of an escape": numbered("allow:*%2f{:x}"),
    "star rules of escapes alone": of_lengths(lambda i: f"allow:{'*' * i}%2f", 1),
    "star rules of lone percents": numbered("allow:/*%x{:x}*y"),
    "stars between escapes": numbered(f"allow:/{'*%2f' * 4_000}{{}}"),
    "escapes in queries": numbered(f"allow:/?{'%2f' * 5}{{:x}}"),
    "stars alone, at the end": numbered(f"allow:/{'*' * 500}{{}}$"),
    "stars between letters": numbered(f"allow:/{'a*' * 300}{{}}"),
    "nested prefixes": of_lengths(lambda i: f"disallow: /{'a' * i}"),
    "nested prefixes, shuffled": nested_shuffled,
    "stars at the end": of_lengths(lambda i: f"allow:/{i}{'*' * (5 + i % 300)}"),
    "anchored": numbered("allow:/{:x}$"),
    "long literals": numbered(f"disallow: /a{{:03}}{'x' * 1_999}"),
    "one endless line": lambda size: b"user-agent: *\ndisallow: /" + b"a" * (size - 25),
    "one endless comment": lambda size: b"#" * size,
    "rules with comments": repeated("allow:/#"),
    "long lines": repeated("disallow: /" + "a" * 16_700),
    "only line ends": lambda size: b"\n" * size,
    "lines of a colon": lambda size: b":\n" * (size // 2),
    "lines of NUL": lambda size: b"\0\n" * (size // 2),
    "spaces before user-agents": lambda size: (b" " * 500 + b"user-agent\n") * (size // 511),
    "empty rules": repeated("allow:"),
    "unknown fields": numbered("{:x}:"),
    "sitemaps": numbered("sitemap:{:x}"),
    "escapes": numbered(f"allow:/{'%41' * 5}{{:x}}"),
    "only percents": repeated("allow:/" + "%" * 1000),
    "bytes above ASCII": lambda size: (
        b"user-agent: *\n" + b"".join(b"allow:/\xff\xfe%d\n" % i for i in range(size // 17))
    ),
    "index files": numbered("allow:/{:x}/index.htm"),
    "one rule's beginning a line": repeated("disa"),
    "such lines between user-agents": lambda size: (
        repeated("disa", "useragent:*\n")(size - 13) + b"useragentx:*\n"
    ),
    "blocks of such lines": repeated("user-agent:*\n" + "\n".join(["disa"] * 200)),
    "fields of two words and of one": repeated("useragent *\nallow "),
    "words, vertical tabs between": repeated("allow " + "a\v" * 1_000 + " b"),
    "dollars and bytes above ASCII": lambda size: (
        b"user-agent: *\n" + (b"allow:/" + b"$\xff" * 1_000 + b"\n") * (size // 2_008)
    ),
    "escapes and slashes": repeated("allow:" + "/%41" * 500),
    "lines of a letter": repeated("a"),
    "star rules that nearly match": worded("allow:*!**{}", shuffled(3)),
}


def URLS(body):
    """Return URLs, nearly all of 8 KiB, by kind; some are made of the file's own patterns."""
    patterns = [
        line.partition(b":")[2].strip(b" *$/").replace(b"*", b"")
        for line in body[-200_000:].split(b"\n")
    ]
    own = b"".join(reversed(patterns[-1000:])).decode("latin-1")
    rng = random.Random(1)
    parts = {
        "a": "a",
        "ab": "ab",
        "aab": "aab",
        "letters": LETTERS,
        "any letters": "".join(rng.choices(LETTERS, k=URL_LENGTH)),
        "four letters": "".join(rng.choices("abcz", k=URL_LENGTH)),
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
