"""A second engine, slow and plain, that the real one is compared with.

Written from SPEC and DESIGN, a sentence at a time; nothing of the engine is used.
"""

import itertools
import operator
import re

UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
RESERVED = "!#&'()+,/:;=?@[]"  # without * and $
FIELDS = {
    "user-agent": ["user-agent", "useragent", "user agent"],
    "allow": ["allow"],
    "disallow": ["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"],
    "sitemap": ["sitemap", "site-map"],
}
ANY, END = "\0", "\1"
# In a query, these escapes are data (RFC 9309 §2.2.2, second row of the table).
DATA = {"%3A": ":", "%2F": "/", "%3F": "?", "%40": "@"}
ESCAPE = "|".join(DATA)
SPACE = " \t\n\r\x0b\x0c"


def lines_of(body):
    """Return (number, field, value) of the lines that say something; bytes as Latin-1 text."""
    text = body.decode("latin-1")
    for mark in ("\xef\xbb\xbf", "\xef\xbb", "\xef"):
        if text.startswith(mark):
            text = text[len(mark) :]
            break
    found = []
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw[:16_663].split("\0")[0].split("#")[0].strip(SPACE)
        if ":" in line:
            field, value = line.split(":", 1)
        else:
            words = [word for word in re.split("[ \t]", line) if word]
            if len(words) != 2:
                continue
            field, value = words
        field, value = field.strip(SPACE), value.strip(SPACE)
        if field:
            found.append((number, kind_of(field), value))
    return found


def kind_of(field):
    lower = "".join(c.lower() if c.isascii() else c for c in field)
    for kind, beginnings in FIELDS.items():
        if any(lower.startswith(beginning) for beginning in beginnings):
            return kind
    return "other"


def groups_of(body):
    """Return a list of (agents, rules); a rule is (allow, value, line)."""
    groups = []
    naming = False
    for number, kind, value in lines_of(body):
        if kind == "user-agent":
            if not naming:
                groups.append(([], []))
            groups[-1][0].append(value)
            naming = True
        elif kind in ("allow", "disallow"):
            naming = False
            if groups:
                groups[-1][1].append((kind == "allow", value, number))
    return groups


def names(agent, token):
    if token == "*":
        return agent == "*" or (agent[:1] == "*" and agent[1] in SPACE)
    allowed = r"[A-Za-z0-9._-]*" if re.search("[0-9.]", token) else "[A-Za-z_-]*"
    named = re.match(allowed, agent)[0]
    return bool(named) and named.lower() == token.lower()


def rules_for(body, tokens):
    groups = groups_of(body)
    for token in (*tokens, "*"):
        ours = [rules for agents, rules in groups if any(names(agent, token) for agent in agents)]
        if ours:
            return [rule for rules in ours for rule in rules]
    return []


def canonical(text, *, pattern):
    """Return the canonical form of a text, in which the operators of a pattern are ANY and END.

    *text* is Latin-1 for bytes.
    """
    result = ""
    position = 0
    while position < len(text):
        character = text[position]
        escape = re.match("%([0-9A-Fa-f]{2})", text[position:])
        position += 3 if escape else 1
        if escape:
            octet = chr(int(escape[1], 16))
            result += octet if octet in UNRESERVED else f"%{ord(octet):02X}"
        elif pattern and character == "*":
            result += ANY
        elif pattern and character == "$" and position == len(text):
            result += END
        elif character in UNRESERVED + RESERVED + "%":
            result += character
        else:
            result += f"%{ord(character):02X}"
    path, question, query = result.partition("?")
    return path + question + re.sub(ESCAPE, lambda escape: DATA[escape[0]], query)


def matches(form, target):
    """Match by dynamic programming: which beginnings of the target can this much match?"""
    # Behind the first raw ? of the target, an escape of DATA is its character.
    query = target.find("?") + 1 or len(target)
    reachable = [True] + [False] * len(target)
    for item in re.findall(f"{ESCAPE}|.", form):
        if item == ANY:
            reachable = list(itertools.accumulate(reachable, operator.or_))
        elif item == END:
            reachable = [end == len(target) and yes for end, yes in enumerate(reachable)]
        else:
            found = [False] * len(reachable)
            for start in itertools.compress(range(len(target) + 1), reachable):
                octets = DATA.get(item, item) if start >= query else item
                if target.startswith(octets, start):
                    found[start + len(octets)] = True
            reachable = found
    return any(reachable)


def written(text, *, pattern):
    """Return a text as written, without a change of its escapes, as ``canonical`` does."""
    escaped = "".join(
        character if character in UNRESERVED + RESERVED + "%" else f"%{ord(character):02X}"
        for character in (text.replace("*", ANY).removesuffix("$") if pattern else text)
    )
    return escaped.replace("%00", ANY) + END * (pattern and text.endswith("$"))


def matches_as_written(value, path):
    """A rule with a % that begins no escape matches what it matches as both are written."""
    form = "".join(
        re.escape(item) if item not in (ANY, END) else {ANY: ".*", END: r"\Z"}[item]
        for item in written(value, pattern=True)
    )
    return re.search("%(?![0-9A-Fa-f]{2})", value) and re.match(
        form, written(octets_of(path), pattern=False), re.DOTALL
    )


def octets_of(text):
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def target_of(path):
    return canonical(octets_of(path), pattern=False)


def verdict(body, path, tokens):
    """Return (allowed, octets of the deciding pattern or None) for a path with its query."""
    target = target_of(path)
    if target == "/robots.txt":
        return True, None
    best = None
    for allow, value, _ in rules_for(body, tokens):
        forms = [canonical(value, pattern=True)]
        if allow and re.search(r"/index\.htm[^/]*\Z", forms[0]):
            forms.append(forms[0][: forms[0].rindex("/") + 1] + END)
        for form in forms:
            if form.startswith(("/", ANY)) and (
                matches(form, target) or (form is forms[0] and matches_as_written(value, path))
            ):
                best = max(best or (0, False), (len(form), allow))
    return (best[1], best[0]) if best else (True, None)
