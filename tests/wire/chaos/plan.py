"""What a seed decides: hosts, requests, settings, workers, and the parts of others' stacks."""

import random
from dataclasses import dataclass, field

from tests.wire.cells import AFTER, BEFORE, FILES, LAST, SCRAPYS

MODES = ("asyncio", "select", "none")
AGENTS = ("chaosbot", "slowbot", "otherbot")
"""The first is that of the crawl, the others are set by middlewares."""
DELAYS = (0.3, 0.5, 0.7, 1, 1.5, 2)
NEVER = {"*": {"disallow": ["/"]}}
"""The rules of a host whose robots.txt is unreachable."""
ORDERS = (BEFORE, AFTER, LAST)
KINDS = "mutates mutates agent agent replaces anew keeps keeps drops raises answers private again".split()  # noqa: SIM905 - as they are drawn
"""Of foreign middlewares."""
OF = {
    **dict.fromkeys(["mutates", "replaces", "anew", "again", "exempts"], (2, [1])),
    "agent": (3, [1, 2]),
    "private": (3, [0]),
    "answers": (4, [0]),
    **dict.fromkeys(["drops", "raises"], (5, [0])),
    **dict.fromkeys(["forgets", "doubles"], (7, [0])),
}
"""To which requests they do it: see `Part`."""


HOSTS = {
    "none": 1,
    "private": 3,
    "delay": 6,
    "rate": 2,
    "groups": 4,
    "forbidden": 1,
    "unreachable": 1,
    "hangs": 1,
    "redirects": 2,
    "changes": 4,
    "huge": 1,
}
"""Kinds of hosts, and how many there are of each."""


@dataclass
class Host:
    """A host, and what its robots.txt says."""

    address: str
    kind: str
    rules: list[dict]
    """Its groups by agent; of a robots.txt that changes, one for each version."""
    story: dict = field(default_factory=dict)
    """For server.py."""
    follows: str | None = None
    """The address of the host whose robots.txt is its own."""


@dataclass
class Plan:
    """A crawl."""

    seed: int
    mode: str
    store: str
    hosts: dict[str, Host]
    settings: dict
    requests: list[list[dict]]
    """Of each worker."""
    stop: tuple[int, float] | None
    """The signal that the first worker gets, and after how many seconds; it is resumed then."""
    outage: tuple[float, float] | None = None
    """After how many seconds the store stops to answer, and for how many."""

    def shows(self):
        """Return the plan in a line."""
        names = ("JOBDIR", "HTTPCACHE_ENABLED", "AUTOTHROTTLE_ENABLED", "DOWNLOAD_DELAY")
        told = [f"{name}={self.settings[name]}" for name in names if self.settings.get(name)]
        queue = self.settings.get("SCHEDULER_PRIORITY_QUEUE", "ours").rpartition(".")[2]
        parts = ",".join(f"{part['kind']}@{part['order']}" for part in self.settings["WIRE_PARTS"])
        stop = f" stop={self.stop[0]}@{self.stop[1]:.1f}" if self.stop else ""
        if self.outage:
            stop += f" outage={self.outage[1]}@{self.outage[0]:.1f}"
        return (
            f"{self.mode} {self.store} workers={len(self.requests)} hosts={len(self.hosts)} {queue} "
            f"c={self.settings['CONCURRENT_REQUESTS']}/{self.settings['CONCURRENT_REQUESTS_PER_DOMAIN']} "
            f"{' '.join(told)}{stop} {parts}"
        )


def text_of(groups):
    """Return a robots.txt with the groups."""
    lines = []
    for agent, group in groups.items():
        lines += [f"User-agent: {agent}", *(f"Disallow: {path}" for path in group["disallow"])]
        if group.get("delay"):
            lines.append(f"Crawl-delay: {group['delay']}")
        if group.get("rate"):
            lines.append(f"Request-rate: 1/{group['rate']}")
        lines.append("")
    return "\n".join(lines)


def delay_of(group):
    return max(group.get("delay") or 0, group.get("rate") or 0)


def group_of(groups, agent):
    """Return the group for the value of a User-Agent header; None if there is none."""
    token = agent.partition("/")[0]
    return groups.get(token, groups.get("*"))


def plan(seed, mode=None):
    """Return what ``seed`` decides."""
    dice = random.Random(seed)
    mode = mode or MODES[seed % 3]
    workers = dice.choice((1, 1, 1, 2, 3))
    store = dice.choice(("memory", "sqlite", "redis") if workers == 1 else ("sqlite", "redis"))
    hosts = {host.address: host for host in _hosts(dice, dice.randint(20, 40))}
    settings = _settings(dice, hosts)
    requests = [_requests(dice, hosts, settings, number, workers) for number in range(workers)]
    stop = None
    if dice.random() < 0.4:
        settings["JOBDIR"] = "job"
        if dice.random() < 0.7:
            stop = dice.choice((15, 15, 9)), dice.uniform(1.5, 5)
    outage = None
    if store != "memory" and dice.random() < 0.3:
        outage = dice.uniform(1, 4), dice.choice((3, 6))
    return Plan(seed, mode, store, hosts, settings, requests, stop, outage)


def _hosts(dice, count):
    network = f"127.{dice.randint(10, 250)}"
    addresses = [f"{network}.{dice.randint(1, 250)}.{number + 1}" for number in range(count)]
    found = []
    for number, address in enumerate(addresses):
        host = _host(dice, address, found)
        if number >= 2 and host.kind not in {"unreachable", "hangs"} and dice.random() < 0.3:
            status = dice.choice((429, 429, 503))
            host.story["refuses"] = dice.randint(2, 4), status, dice.randint(2, 5)
            host.story["tells"] = dice.random() < 0.7
        found.append(host)
    return found


def _host(dice, address, before):  # noqa: C901 - a case for each kind
    private = {"disallow": ["/private"]}
    kind = dice.choices(list(HOSTS), HOSTS.values())[0]
    if kind == "redirects" and not before:
        kind = "private"
    if kind == "none":
        return Host(address, kind, [{}])
    if kind in {"unreachable", "hangs"}:
        unreachable = {"robots": "x", "robots_status": 503}
        story = unreachable if kind == "unreachable" else {"robots_hangs": True}
        return Host(address, kind, [NEVER], story)
    if kind == "redirects":
        target = dice.choice([host for host in before if host.kind != "changes"] or before)
        if target.kind == "changes" or target.follows:
            return Host(address, "private", [{"*": private}], {"robots": text_of({"*": private})})
        return Host(address, kind, target.rules, {"robots_at": target.address}, target.address)
    if kind == "forbidden":
        rules = {"*": {"disallow": ["/"]}}
    elif kind == "delay":
        rules = {"*": {**private, "delay": dice.choice(DELAYS)}}
    elif kind == "rate":
        rules = {"*": {**private, "rate": dice.choice((1, 2))}}
    elif kind == "groups":
        rules = {
            "slowbot": {**private, "delay": dice.choice(DELAYS)},
            "otherbot": {"disallow": ["/"]},
            "*": {**private, "delay": dice.choice((None, None, 0.5))},
        }
    elif kind == "changes":
        open_, shut = {"*": {"disallow": ["/private"]}}, {"*": {"disallow": ["/"]}}
        slow = {"*": {"disallow": ["/private"], "delay": 1}}
        rules = dice.choice(((open_, shut), (open_, slow), (slow, shut), (shut, open_)))
        story = {
            "robots": text_of(rules[0]),
            "max_age": dice.choice((1, 2, 3)),
            "changed": (dice.choice((1, 2, 4)), text_of(rules[1])),
        }
        return Host(address, kind, list(rules), story)
    else:
        rules = {"*": {**private, "delay": dice.choice((None, 1))}}
    story = {"robots": text_of(rules), "padding": 700_000 if kind == "huge" else 0}
    return Host(address, kind, [rules], story)


def _settings(dice, hosts):
    addresses = list(hosts)
    settings = {
        "USER_AGENT": f"{AGENTS[0]}/1.0",
        "CONCURRENT_REQUESTS": dice.choice((1, 2, 4, 8, 16, 16, 32)),
        "CONCURRENT_REQUESTS_PER_DOMAIN": dice.choice((1, 2, 4, 8, 8)),
        "DOWNLOAD_TIMEOUT": 3,
        "RETRY_TIMES": 3,
        "REP_TIMEOUT": 3,
        "REP_CACHE_TTL_MIN": 0,
        "REP_RETRY_DELAY": 2,
        "REP_DEFER_TIMEOUT": dice.choice((0, 0, 6, 15)),
    }
    if (queue := dice.choice((None, None, "scrapys", "aware"))) is not None:
        settings["SCHEDULER_PRIORITY_QUEUE"] = SCRAPYS[queue]
    if dice.random() < 0.2:
        settings["AUTOTHROTTLE_ENABLED"] = True
        settings["AUTOTHROTTLE_START_DELAY"] = 0.2
    if delay := dice.choice((0, 0, 0, 0.25, 0.5)):
        settings["DOWNLOAD_DELAY"] = delay
    if dice.random() < 0.3:
        settings["DOWNLOAD_SLOTS"] = {
            address: dice.choice(
                ({"concurrency": 3}, {"delay": 0.1, "concurrency": 4}, {"delay": 0})
            )
            for address in dice.sample(addresses, 4)
        }
    if dice.random() < 0.25:
        policy = dice.choice(("DummyPolicy", "RFC2616Policy"))
        settings |= {
            "HTTPCACHE_ENABLED": True,
            "HTTPCACHE_DIR": "cache",
            "HTTPCACHE_IGNORE_HTTP_CODES": [429, 503],
            "HTTPCACHE_POLICY": f"scrapy.extensions.httpcache.{policy}",
        }
    if dice.random() < 0.5:
        settings |= FILES
    settings["WIRE_PARTS"] = [_part(dice, addresses, settings) for _ in range(dice.randint(2, 4))]
    return settings


def _part(dice, addresses, settings):
    """Return what a foreign middleware does, to which requests."""
    kind = dice.choice(KINDS)
    most = 3.0 if settings["CONCURRENT_REQUESTS"] >= 8 else 0.4
    # Always to a later host, so that no request goes round and round.
    chosen = sorted(dice.sample(addresses, 6), key=addresses.index)
    order, hosts = dice.choice(ORDERS), {}
    for address in chosen[:3]:
        hosts[address] = {
            "mutates": chosen[3],
            "replaces": chosen[4],
            "anew": chosen[5],
            "agent": dice.choice(AGENTS[1:]) + "/1.0",
            "keeps": most,
        }.get(kind)
    return part(kind, order, hosts)


def part(kind, order, hosts):
    return {"kind": kind, "order": order, "hosts": hosts, "of": OF.get(kind, (1, [0]))}


def _requests(dice, hosts, settings, worker, workers):  # noqa: C901 - a case for each kind
    """Return the requests of a worker."""
    refusing = [address for address, host in hosts.items() if "refuses" in host.story]
    few = settings["CONCURRENT_REQUESTS"] < 4
    given, hangs = [], 0
    for address in hosts:
        count = dice.randint(3, 8)
        if address in refusing:
            count += 6
        count = max(2, count // workers) if workers > 1 else count
        if few:
            count = max(2, count // 2)
        for _ in range(count):
            page = dice.choices(
                ("page", "private", "slow", "hang", "lose", "to"), (12, 3, 1, 0.5, 1, 2)
            )[0]
            if page == "hang":
                hangs += 1
                page = "page" if hangs > (1 if few else 3) else page
            if page == "to":
                page = f"to/{dice.choice(list(hosts))}"
            at = 0.0 if dice.random() < 0.5 else dice.uniform(0, 6)
            given.append({"address": address, "kind": page, "at": at, "way": "start", "then": None})
    ways = ["direct"] * 8 + ["media"] * 8 * ("ITEM_PIPELINES" in settings)
    for each in dice.sample(given, min(len(given), len(ways))):
        each["way"] = ways.pop()
    rest = [each for each in given if each["way"] == "start"]
    dice.shuffle(rest)
    for each, then in zip(rest[:12:2], rest[1:12:2], strict=False):
        each["then"], then["way"] = {"address": then["address"], "kind": then["kind"]}, "then"
    given = [each for each in given if each["way"] != "then"]
    for number, each in enumerate(given, 2000 * worker):
        each["number"] = number
        if each["then"] is not None:
            each["then"]["number"] = number + 1000
    return given
