"""What the adapters in Python share: a line of JSON in, a line of JSON out."""

import base64
import gc
import json
import platform
import string
import sys
from importlib.metadata import version
from time import process_time
from urllib.parse import quote

ROUNDS = 3


def serve(parse, allowed, more=None, *, package=None, takes_several=False):
    """Answer each case that comes.

    *parse* takes a body, *allowed* what that returned, the tokens and a URL. *more* takes the same,
    and returns other keys of the answer. With ``--version``, print the version of *package*, or of
    Python. With ``--speed``, print how long it takes. A crawler of several names can't be asked of
    an engine that takes one, unless it *takes_several*.
    """
    if "--version" in sys.argv:
        print(version(package) if package else platform.python_version())
    elif "--speed" in sys.argv:
        print(json.dumps(times(parse, allowed, takes_several)))
    else:
        for line in sys.stdin:
            case = json.loads(line)
            tokens = case["tokens"]
            found = {}
            if takes_several or len(tokens) == 1:
                tokens = tokens if takes_several else tokens[0]
                try:
                    robots = parse(base64.b64decode(case["body"]))
                    found = {"allowed": allowed(robots, tokens, case["url"])}
                    found |= more(robots, tokens, case["url"]) if more else {}
                except Exception as error:  # noqa: BLE001 - of whatever kind: the case is failed
                    found = {"error": repr(error)}
            print(json.dumps(found), flush=True)


def times(parse, allowed, takes_several):
    """Return the microseconds of a first verdict and of a further one, the least of some rounds.

    A line of the input is a file: its body, tokens and URLs. What is built at a first verdict is
    not built again: the file is parsed anew in each round.
    """
    files = [json.loads(line) for line in sys.stdin]
    for file in files:
        file["body"] = base64.b64decode(file["body"])
        file["tokens"] = file["tokens"] if takes_several else file["tokens"][0]
    firsts, furthers = [], []
    for _ in range(ROUNDS):
        first = further = count = errors = 0
        gc.collect()
        for file in files:
            url, *others = file["urls"]
            tokens = file["tokens"]
            begun = process_time()
            try:
                robots = parse(file["body"])
                allowed(robots, tokens, url)
                asked = process_time()
                for other in others:
                    allowed(robots, tokens, other)
            except Exception:  # noqa: BLE001 - of whatever kind: the file can't be read
                errors += 1
                continue
            further += process_time() - asked
            first += asked - begun
            count += len(others)
        firsts.append(first / (len(files) - errors))
        furthers.append(further / count)
    return {"first": min(firsts) * 1e6, "further": min(furthers) * 1e6, "errors": errors}


def escaped(url):
    """Return *url* as Google's parser asks for it: it leaves the escaping to the caller."""
    return quote(url, safe=string.punctuation)
