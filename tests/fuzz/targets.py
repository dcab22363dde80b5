"""Feed arbitrary bytes to everything that reads data of sites, stores and files.

    python -m tests.fuzz.targets [TARGET…] [--seconds N] [--corpus DIRECTORY]

With atheris, each target is fuzzed by coverage, and the corpus of a target is kept in a directory of
its own. Without it, the inputs of the corpus are changed at random. It stops at the first input that
raises, and writes it to crash-TARGET.
"""

import argparse
import atexit
import logging
import random
import subprocess
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

TOKENS = (
    b'{"origin":"https://a","last":{"kind":"unavailable","at":1.0,"url":"https://a/robots.txt"},'
    b'"copy":null,"unreachable_since":null,"unreachable_for":0.0,"tries":0,"next_try":null}',
    b"User-agent: *\n", b"Disallow: /", b"Allow: /a*b$\n", b"Crawl-delay: 1\n", b"\r\n", b"\n", b"\0",
    b"Content-Signal: /a ai-train=no\n", b"Content-Usage: train-ai=n\n", b"%2F", b"$", b"*", b"#",
    b"License: https://a/\n", b"Sitemap: ", b"\xef\xbb\xbf", b"<html><body><pre>", b"noindex",
    b"\x1f\x8b", b"SQLite format 3\0",
    b"https://u:p@a.example:8443/b%2f;c?d=e#f", b"//[::1]:80/", b"\xc3\xa9", b"max-age=5, no-cache", b"User-agent: a\n",
    b'<https://a/1>; rel="license"; type="application/rsl+xml"', b"train-ai=n, search=y", b"mybot: none",
)  # fmt: skip
KEY = "https://a"
TARGETS = {}


def target(fuzz):
    TARGETS[fuzz.__name__] = fuzz
    return fuzz


@target
def parser(data):
    from scrapy_rep.protocol import RobotsTxt
    from scrapy_rep.protocol.lint import lint

    robots = RobotsTxt.parse(data)
    text = data.decode("utf-8", "surrogateescape")
    url = f"https://a/{text[:200]}"
    for group in robots.groups:
        lines = [rule.line for rule in group.rules]
        assert lines == sorted(lines)
    assert robots.sitemaps is not None
    verdict = robots.verdict(url, "a", "b")
    assert robots.verdict(url, "a", "b") == verdict
    robots.explain("/a", "a")
    lint(data)


def results(usage):
    from scrapy_rep.protocol.limits import MAX_USAGE_RAW
    from scrapy_rep.protocol.usage.statement import MEANINGS, PURPOSES

    found = {usage.result(purpose) for purpose in PURPOSES}
    found |= {usage.value(label) for _, label in MEANINGS}
    assert found <= {"allow", "disallow", "unknown"}
    assert all(len(statement.raw) <= MAX_USAGE_RAW for statement in usage.statements)


@target
def usage(data):
    from scrapy_rep.protocol import RobotsTxt
    from scrapy_rep.protocol.usage import HEADERS, Usage

    found = RobotsTxt.parse(data).usage("https://a/b", "a")
    results(found)
    for name in HEADERS:
        found = found.with_header(name, [data, data.decode("latin-1")])
        results(found)
    results(found.with_meta((name, str(data)) for name in ("robots", "a", "tdm-reservation")))
    assert Usage.from_dict(found.as_dict()) == found


@target
def tags(data):
    from scrapy_rep.protocol.meta_tags import of_page

    text = data.decode("latin-1")
    for found in (of_page([text], (), ["a"]), of_page((), [("robots", text)], ())):
        assert found.noindex in {False, True}


@target
def urls(data):
    from scrapy_rep.protocol.origin import origin_of, split_url, target_of

    def none_if_invalid(function, url):
        with suppress(ValueError):
            return function(url)

    text = data.decode("utf-8", "surrogateescape")
    for url in (text, f"http://{text}", f"https://{text}/x"):
        origin, split = none_if_invalid(origin_of, url), none_if_invalid(split_url, url)
        assert split == (origin and (origin, target_of(url)))
        assert target_of(url).startswith("/")
        if origin is not None:
            assert origin_of(str(origin)) == origin_of(origin.robotstxt_url) == origin


@target
def answers(data):
    from scrapy_rep.fetch.decoding import decode
    from scrapy_rep.fetch.errors import DecodingError
    from scrapy_rep.protocol.header_times import delta_seconds, max_age, retry_after
    from scrapy_rep.protocol.html_pages import is_not_found_page, unwrap

    text = data.decode("latin-1")
    assert (max_age(text) or 0) >= 0 <= (delta_seconds(text) or 0)
    assert 0 <= (retry_after(text, 1e9) or 0) < 2**40
    assert is_not_found_page(data) in {False, True}
    unwrap(data, truncated=True)
    for codings in (["gzip"], ["deflate"], ["gzip", "deflate"], ["br"], ["identity", "x"]):
        with suppress(DecodingError):
            assert len(decode(data, codings, 1_000, complete=False)) <= 1_000


@target
def records(data):
    from scrapy_rep.protocol.access_policy import Policy
    from scrapy_rep.protocol.record import VERSION, Record, RecordError

    version = bytes([VERSION])
    state = b'{"origin":"%s","last":{"kind":"unreachable","at":1.0,"url":"a"},' % KEY.encode()
    state += b'"unreachable_since":1.0,"unreachable_for":0,"tries":1,"next_try":2.0}'
    header = len(data).to_bytes(4, "big") + data + b"Disallow: /"
    for form in (
        (data, data),
        (version + data, b""),
        (version + state, version + zlib.compress(data)),
        (version + state, version + zlib.compress(header)),
    ):
        with suppress(RecordError):
            record = Record.decode(*form, KEY)
            Policy().access(record, 0.0)
            Policy().is_due(record, 0.0)


def use(store):
    """Call what reads data of a store, which then has an answer or is a store that fails."""
    from scrapy_rep.stores.base import PAUSE, Claim, StoreError

    for call in (
        lambda: store.read([KEY]),
        lambda: store.write([Claim(KEY, "a", 1), Claim("host:a", PAUSE, 1, force=True)]),
        lambda: list(store.keys()),
        store.pauses_left,
        store.close,
    ):
        with suppress(StoreError):
            call()


@target
def sqlite(data):
    from scrapy_rep.stores.sqlite import SQLiteStore

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.sqlite")
        options = {"max_age": 9, "max_bytes": 9_999, "timeout": 1}
        use(SQLiteStore(path, **options, clock=time.time))
        whole = bytearray(path.read_bytes())
        at = int.from_bytes(data[:2], "big") % len(whole)
        whole[at : at + len(data)] = data
        path.write_bytes(whole)
        use(SQLiteStore(path, **options, clock=time.time))


@target
def redis(data):
    from scrapy_rep.stores.redis import RedisStore

    server = _redis()
    if server is None:
        return
    client = server.client
    options = {"prefix": "r:", "max_age": 9, "timeout": 5}
    client.flushall()
    client.hset(f"r:record:{KEY}", mapping={"at": data, "state": data, "body": data})
    for key in (f"r:lease:{KEY}", "r:lease:host:a", "r:pauses"):
        client.set(key, data)
    use(RedisStore(server.uri, **options))
    client.close()


@cache
def _redis():
    from tests.redis_server import PROGRAM, RedisServer

    if PROGRAM is None:
        return None
    server = RedisServer(Path(tempfile.mkdtemp()))
    atexit.register(server.stop)
    return server


def changed(rng, corpus):
    data = bytearray(rng.choice(corpus))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 1:
            data[at : at + 1] = rng.randbytes(1)
        elif kind == 2:
            del data[at : at + rng.randrange(9)]
        else:
            other = rng.choice(corpus)
            data[at:] = other[rng.randrange(len(other) + 1) :]
    return bytes(data[:4_096])


def run(name, seconds, corpus):
    """Return the number of inputs that a target has read."""
    fuzz, rng = TARGETS[name], random.Random(time.time_ns())
    inputs = [*TOKENS, b"".join(TOKENS)]
    inputs += [path.read_bytes() for path in sorted(corpus.glob("*"))] if corpus else []
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = changed(rng, inputs)
        number += 1
        try:
            fuzz(data)
        except BaseException:
            Path(f"crash-{name}").write_bytes(data)
            raise
    return number


def run_with_atheris(name, seconds, corpus):
    """Fuzz a target by coverage; doesn't return."""
    import atheris

    with atheris.instrument_imports(include=["scrapy_rep"]):
        TARGETS[name](b"")
    for number, token in enumerate(TOKENS):
        (corpus / f"token-{number}").write_bytes(token)
    arguments = [f"-max_total_time={seconds}", "-max_len=4096", f"-artifact_prefix=crash-{name}-"]
    atheris.Setup([sys.argv[0], str(corpus), *arguments], TARGETS[name])
    atheris.Fuzz()


def main():
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz.targets")
    arguments.add_argument("targets", nargs="*", metavar="TARGET", default=[*TARGETS])
    arguments.add_argument("--seconds", type=int, default=60, help="of each target")
    arguments.add_argument("--corpus", type=Path, help="directory with a directory for each target")
    args = arguments.parse_args()
    logging.disable()
    for name in args.targets:
        corpus = None if args.corpus is None else args.corpus / name
        if corpus is not None:
            corpus.mkdir(parents=True, exist_ok=True)
        if find_spec("atheris") is None:
            print(f"{name}: {run(name, args.seconds, corpus):,} inputs", flush=True)
            continue
        if corpus is not None and len(args.targets) == 1:
            run_with_atheris(name, args.seconds, corpus)
        # libFuzzer ends the process, so each target has one of its own.
        place = ["--corpus", str(args.corpus or tempfile.mkdtemp())]
        command = [sys.executable, "-m", "tests.fuzz.targets", name, "--seconds", str(args.seconds)]
        print(f"== {name}", flush=True)
        subprocess.run([*command, *place], check=True)


if __name__ == "__main__":
    main()
