"""What the adapters in Python share: a line of JSON in, a line of JSON out."""

import base64
import json
import platform
import string
import sys
from importlib.metadata import version
from urllib.parse import quote


def serve(parse, allowed, more=None, *, package=None, takes_several=False):
    """Answer each case that comes.

    *parse* takes a body, *allowed* what that returned, the tokens and a URL. *more* takes the same,
    and returns other keys of the answer. With ``--version``, print the version of *package*, or of
    Python. A crawler of several names can't be asked of an engine that takes one, unless it
    *takes_several*.
    """
    if "--version" in sys.argv:
        print(version(package) if package else platform.python_version())
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


def escaped(url):
    """Return *url* as Google's parser asks for it: it leaves the escaping to the caller."""
    return quote(url, safe=string.punctuation)
