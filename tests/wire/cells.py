"""The cells of the table: hosts, workers that crawl them, and what stands between queue and wire.

Most cells have the same hosts and requests, BASE: one host with ``Crawl-delay: 1``, one that answers its
third page with 429 and ``Retry-After: 5``, and a control without delay. They differ in the way that
requests go.
"""

from dataclasses import dataclass, field, replace

ADDRESSES = {
    "paced": "127.0.1.1",
    "refusing": "127.0.1.2",
    "control": "127.0.1.3",
    "to paced": "127.0.1.4",
    "to refusing": "127.0.1.5",
    "changing": "127.0.1.6",
    "gate": "127.0.1.7",
}
"""Of the hosts with a role. Requests for ``to ...`` are rewritten or redirected to that host."""
SITES = [f"127.2.{number // 200}.{1 + number % 200}" for number in range(300)]
"""Of hosts without a role."""

ALL_AGENTS = "User-agent: *\nDisallow: /private\n"
DELAY = 1
PAUSE = 5
STORIES = {
    "paced": {"robots": f"{ALL_AGENTS}Crawl-delay: {DELAY}\n"},
    "refusing": {"robots": ALL_AGENTS, "refuses": (3, 429, PAUSE)},
    "control": {"robots": ALL_AGENTS},
}
FREE = {"DOWNLOAD_SLOTS": {ADDRESSES["control"]: {"delay": 0}}}
"""Settings for a control without delay, where others have DOWNLOAD_DELAY."""
PARTS = "tests.wire.parts."
FILES = {
    "ITEM_PIPELINES": {"tests.wire.spider.CountedFiles": 1},
    "FILES_STORE": "files",
    "FILES_EXPIRES": 0,
}
"""Settings for requests of the way ``media``."""
BEFORE, AFTER, LAST = 50, 543, 999
"""Orders of middlewares before ours, after it, and next to the downloader."""


@dataclass(frozen=True)
class Worker:
    requests: list[dict]
    """With a ``host``, which is a role or an address; and ``after``, if its URL comes from a callback for
    another host. The other keys are those of `WireSpider`."""
    begins: str = "at once"
    """Or ``refused``: when a host has refused; ``ended``: when the workers before have ended."""
    awaits: tuple[str, ...] = ()
    """The spider closes when the requests for these hosts have ended."""
    closes_after_refusal: bool = False


@dataclass(frozen=True)
class Cell:
    name: str
    shows: str
    workers: tuple[Worker, ...] = ()
    stories: dict = field(default_factory=lambda: STORIES)
    settings: dict = field(default_factory=dict)
    store: str = "memory"
    """Or ``sqlite`` or ``redis``, which the workers share."""
    jobdir: bool = False
    busy: int = 0
    """Processes that spin meanwhile."""
    grace: float = 0.1
    """Seconds after a refusal was read in which a request may still be on its way."""
    at_most: float = 30.0
    hang: float = 2.0
    """DOWNLOAD_TIMEOUT of a cell whose host hangs."""
    without: tuple[str, ...] = ()
    """The cell is crawled a second time without the requests for these hosts, to compare."""
    loses: tuple[str, ...] = ()
    """A positive control: what it breaks on purpose, and the table has to see."""
    excepted: tuple[str, ...] = ()
    """What the promise leaves out."""


def requests(host, count, *, at=0.0, every=0.0, way="start"):
    """Return ``count`` requests for ``host``, the first of them sent ``at`` seconds."""
    return [{"host": host, "at": at + every * number, "way": way} for number in range(count)]


def base(*, paced=6, refusing=8, later=8, control=24, way="start"):
    """Return the requests of most cells: some at once, some while the pause lasts."""
    return [
        *requests("control", control // 2),
        *requests("paced", paced, way=way),
        *requests("refusing", refusing, way=way),
        *requests("refusing", later, at=0.6, every=0.5, way=way),
        *requests("control", control - control // 2, at=0.5, every=0.4),
    ]


def refusing(**story):
    """Return the stories of most cells, of which that of the host that refuses is another one."""
    return {**STORIES, "refusing": {**STORIES["refusing"], **story}}


def through(given):
    """Let every second request for the hosts with a promise go by the host that leads there."""
    found, seen = [], {}
    for each in given:
        host = each["host"]
        seen[host] = seen.get(host, 0) + 1
        leads = f"to {host}" in ADDRESSES and seen[host] % 2 == 0
        found.append({**each, "host": f"to {host}"} if leads else each)
    return found


def middleware(kind, order, hosts, of=(1, [0])):
    """Return settings with a middleware that does this to the hosts: see `Part`."""
    hosts = {ADDRESSES.get(host, host): what for host, what in hosts.items()}
    return {
        "WIRE_PARTS": [{"kind": kind, "hosts": hosts, "of": of}],
        "DOWNLOADER_MIDDLEWARES": {f"{PARTS}Part": order},
    }


BASE = Cell("plain", "our queue, nobody between", (Worker(base()),))
DELAYED = SITES[:20]
"""Those with a delay in some cells: more hosts have more gaps."""
LEADS = {"to paced": ADDRESSES["paced"], "to refusing": ADDRESSES["refusing"]}
BOTH = dict.fromkeys(["paced", "refusing"])
SLOTS = {ADDRESSES[host]: {"delay": 0.1, "concurrency": 8} for host in LEADS}
SLOW_AGENTS = f"User-agent: slowbot\nCrawl-delay: {DELAY}\nDisallow: /private\n\n{ALL_AGENTS}"
SCRAPYS = {
    "scrapys": "scrapy.pqueues.ScrapyPriorityQueue",
    "aware": "scrapy.pqueues.DownloaderAwarePriorityQueue",
}


def way(name, shows, given=None, **more):
    """Return the cell with the base, and what is named in place of it."""
    return replace(BASE, name=name, shows=shows, workers=(Worker(given or base()),), **more)


def rewriting():
    for name, part, order, shows in (
        ("replaced", "replaces", AFTER, "rewritten by request.replace"),
        ("replaced-last", "replaces", LAST, "the same, next to the downloader"),
        ("anew", "anew", AFTER, "rewritten by a new Request"),
        ("mutated", "mutates", AFTER, "rewritten in place"),
        ("mutated-last", "mutates", LAST, "the same, next to the downloader"),
    ):
        yield way(f"a-{name}", shows, through(base()), settings=middleware(part, order, LEADS))


def agents():
    more = DELAYED[:4]
    stories = {**STORIES, **{host: {"robots": SLOW_AGENTS} for host in ["paced", *more]}}
    given = [*base(), *(each for site in more for each in requests(site, 5, at=0.2))]
    for name, order in (("before", BEFORE), ("after", AFTER), ("last", LAST)):
        settings = middleware("agent", order, dict.fromkeys([*BOTH, *more], "slowbot/1.0"))
        shows = f"User-Agent of a group with a delay, set at {order}"
        yield way(f"b-{name}", shows, given, stories=stories, settings=settings)


def keeping():
    for name, order in (("before", BEFORE), ("after", AFTER), ("last", LAST)):
        settings = middleware("keeps", order, dict.fromkeys(BOTH, 3.0))
        yield way(f"c-{name}", f"kept for 0 to 3 s at {order}", settings=settings)


def redirected():
    leads = {host: {"robots": ALL_AGENTS, "redirects": address} for host, address in LEADS.items()}
    stories = {**STORIES, **leads}
    settings = {"DOWNLOAD_SLOTS": SLOTS}
    shows = "redirected from a host with an entry in DOWNLOAD_SLOTS"
    yield way("d-redirect", shows, through(base()), stories=stories, settings=settings)
    copies = [
        {**each, "host": each["host"].removeprefix("to "), "after": each["host"]}
        if each["host"].startswith("to ")
        else each
        for each in through(base())
    ]
    yield way("d-meta", "callbacks copy response.meta", copies, settings=settings)


def stalling():
    story = {"robots": STORIES["paced"]["robots"], "closes": True}
    stories = {**STORIES, **dict.fromkeys(["paced", *DELAYED], story)}
    given = [*base(), *(each for site in SITES for each in requests(site, 1))]
    given += [each for site in DELAYED for each in requests(site, 4)]
    for name, settings, where in (
        ("stalls", {"EXTENSIONS": {f"{PARTS}Stalls": 0}}, "now and then"),
        ("reached", {"EXTENSIONS": {f"{PARTS}StallsAtDownloader": 0}}, "in a signal handler"),
        (
            "blocked",
            middleware("blocks", LAST, dict.fromkeys([*BOTH, *DELAYED])),
            "in a middleware",
        ),
    ):
        shows = f"the event loop stops for 0.1 to 0.5 s {where}; 300 sites at the start"
        more = {"stories": stories, "settings": settings, "grace": 0.6}
        yield way(f"e-{name}", shows, given, **more)


def fleets():
    worker = base(paced=3, refusing=2, later=10, control=8)
    # When all have begun.
    stories = refusing(refuses=(14, 429, PAUSE))
    for store in ("sqlite", "redis"):
        shows = f"four workers with {store}, two processes spin"
        more = {"stories": stories, "store": store, "busy": 2, "grace": 1.3}
        yield Cell(f"f-{store}", shows, (Worker(worker),) * 4, **more)


def other_ways():
    yield way("g-direct", "engine.download_async", base(way="direct"))
    yield way("g-media", "FilesPipeline", base(way="media"), settings=FILES)
    for name, queue in SCRAPYS.items():
        settings = {"SCHEDULER_PRIORITY_QUEUE": queue}
        yield way(f"g-{name}", queue.rpartition(".")[2], settings=settings)


def throttling():
    at_once = base(refusing=16, later=4, control=16)
    throttle = {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.2}
    yield way("h-autothrottle", "AutoThrottle", at_once, settings=throttle)
    for delay in (0.25, 0.5, 1):
        settings = {**FREE, "DOWNLOAD_DELAY": delay, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}
        shows = f"DOWNLOAD_DELAY {delay}, CONCURRENT_REQUESTS_PER_DOMAIN 8"
        yield way(f"h-delay-{delay}", shows, at_once, settings=settings, at_most=45.0)
    for name, queue in SCRAPYS.items():
        settings = {**FREE, "DOWNLOAD_DELAY": 0.5, "SCHEDULER_PRIORITY_QUEUE": queue}
        shows = f"DOWNLOAD_DELAY 0.5, {queue.rpartition('.')[2]}"
        yield way(f"h-{name}", shows, at_once, settings=settings, at_most=45.0)


def plain():
    yield BASE
    stories = refusing(refuses=(3, 503, PAUSE))
    yield way("plain-503", "the same with 503", stories=stories)
    stories = refusing(**STORIES["paced"])
    yield way("plain-both", "the host that refuses has a delay, too", stories=stories)
    stories = {**STORIES, "paced": {**STORIES["paced"], "loses": 3}}
    shows = "Twisted sends again what a lost keep-alive connection had (excepted)"
    yield way("plain-lost", shows, stories=stories, excepted=("gap",))


def second_workers():
    stories = refusing(refuses=(3, 429, 6))
    stories["gate"] = {"opens": ADDRESSES["refusing"]}
    first = Worker([*requests("control", 12), *requests("refusing", 4)])
    pages = [*requests("control", 12), *requests("refusing", 10)]
    after_gate = [
        {**each, "after": "gate"} if each["host"] == "refusing" else each for each in pages
    ]
    for store in ("sqlite", "redis"):
        for name, second, shows in (
            ("starts", Worker(pages, begins="refused"), "starts in the pause"),
            ("meets", Worker(after_gate), "first meets the host in the pause"),
        ):
            what = f"a second worker with {store} {shows}"
            workers = first, second
            yield Cell(f"j-{name}-{store}", what, workers, stories=stories, store=store)


def resumed():
    stories = refusing(refuses=(3, 429, 6))
    given = [*requests("control", 12), *requests("refusing", 30)]
    workers = Worker(given, closes_after_refusal=True), Worker([], begins="ended")
    shows = "closed after the refusal, and resumed with its JOBDIR"
    resumed = Cell("k-resumed", shows, workers, stories=stories, store="sqlite", jobdir=True)
    yield resumed
    settings = {**FREE, "DOWNLOAD_DELAY": 0.5}
    yield replace(resumed, name="k-delay", shows=f"{shows}; DOWNLOAD_DELAY 0.5", settings=settings)


def hanging():
    stories = refusing(refuses=(3, 429, 3), hangs=True)
    settings = {"DOWNLOAD_TIMEOUT": BASE.hang, "RETRY_ENABLED": False, "REP_DEFER_TIMEOUT": 20}
    given = [
        *requests("control", 24, every=0.2),
        *requests("refusing", 4),
        *requests("refusing", 6, at=0.5, every=0.2),
    ]
    yield way("hangs", "hangs after a 429", given, stories=stories, settings=settings)
    settings = {**settings, "SCHEDULER_PRIORITY_QUEUE": SCRAPYS["scrapys"]}
    shows = "the same with ScrapyPriorityQueue"
    yield way("hangs-scrapys", shows, given, stories=stories, settings=settings)


def expiring():
    story = {"robots": ALL_AGENTS, "max_age": 2, "changed": (1, "User-agent: *\nDisallow: /\n")}
    stories = {**STORIES, "changing": story}
    given = [
        *requests("control", 12),
        *requests("changing", 10),
        *requests("changing", 6, at=1, every=1),
    ]
    settings = {**FREE, "DOWNLOAD_DELAY": 1, "REP_CACHE_TTL_MIN": 0, "DOWNLOAD_DELAY_JITTER": 0}
    shows = "robots.txt expires and changes while requests wait in a slot"
    yield way("expires", shows, given, stories=stories, settings=settings)
    settings = {**settings, "SCHEDULER_PRIORITY_QUEUE": SCRAPYS["scrapys"]}
    shows += ", ScrapyPriorityQueue"
    yield way("expires-scrapys", shows, given, stories=stories, settings=settings)


def pausing():
    stories = refusing(refuses=(1, 429, 300))
    healthy = SITES[:20]
    delay = {"DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 0}
    rewriting = {**delay, **middleware("mutates", AFTER, LEADS)}
    scrapys = {**delay, "SCHEDULER_PRIORITY_QUEUE": SCRAPYS["scrapys"]}
    holding = {**scrapys, **middleware("holds", LAST, {"refusing": 5})}
    for name, host, settings, shows, loses in (
        ("pause", "refusing", delay, "", ()),
        ("pause-scrapys", "refusing", scrapys, ", ScrapyPriorityQueue", ()),
        ("pause-rewritten", "to refusing", rewriting, ", requests rewritten to it", ()),
        ("control-holds", "refusing", holding, ", a middleware holds its requests", ("rate",)),
    ):
        given = requests("refusing", 4)
        for _ in range(12):
            given += [*requests(host, 4), *(each for site in healthy for each in requests(site, 1))]
        yield Cell(
            name,
            f"20 hosts and one in a pause of 300 s, DOWNLOAD_DELAY 0.5{shows}",
            (Worker(given, awaits=tuple(healthy)),),
            stories=stories,
            settings=settings,
            without=("refusing", "to refusing"),
            loses=loses,
        )


def controls():
    off = {"ADDONS": {}, "ROBOTSTXT_OBEY": False}
    yield way("control-off", "robots.txt off", settings=off, loses=("gap", "pause"))
    settings = middleware("sends_behind", LAST, BOTH)
    shows = "a middleware sends requests by itself"
    yield way("control-behind", shows, settings=settings, loses=("gap", "pause"))
    forgets = middleware("forgets", AFTER, {"paced": 1}, (10, [3]))
    drops = middleware("drops", AFTER, {"paced": 1})
    settings = {
        "WIRE_PARTS": forgets["WIRE_PARTS"] + drops["WIRE_PARTS"],
        "DOWNLOADER_MIDDLEWARES": {f"{PARTS}Part": AFTER, f"{PARTS}OtherPart": AFTER + 1},
    }
    shows = "a middleware forgets requests"
    more = {"loses": ("gap", "ends"), "at_most": 8.0}
    yield way("control-lost", shows, settings=settings, **more)
    (expires, _) = expiring()
    (worker,) = expires.workers
    given = [
        {**each, "meta": {"dont_obey_robotstxt": True}} if number % 2 else each
        for number, each in enumerate(worker.requests)
    ]
    shows = "some requests don't obey a robots.txt that changes"
    more = {"workers": (Worker(given),), "loses": ("disallowed", "stale")}
    yield replace(expires, name="control-exempt", shows=shows, **more)


PARTS_OF_TABLE = (
    *(plain, rewriting, agents, keeping, redirected, stalling, fleets, other_ways, throttling),
    *(second_workers, resumed, hanging, expiring, pausing, controls),
)
CELLS = [cell for cells in PARTS_OF_TABLE for cell in cells()]
