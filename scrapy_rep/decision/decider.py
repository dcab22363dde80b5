"""Decides on requests: by an override (an entry of REP_OVERRIDES), else by robots.txt."""

from functools import partial
from typing import Final, NamedTuple

from scrapy import Request
from scrapy.crawler import Crawler

from scrapy_rep.cache.entry import Entry
from scrapy_rep.cache.lookups import Done, Lookups
from scrapy_rep.decision.request_tokens import ProductTokens
from scrapy_rep.decision.spellings import NO_ORIGIN, strictest_verdict
from scrapy_rep.decision.usage import PURPOSES_KEY, UsageJudge
from scrapy_rep.overrides import DISALLOWED, Override, Overrides
from scrapy_rep.protocol.origin import ROBOTSTXT, Origin, split_url, target_of
from scrapy_rep.protocol.product_tokens import Tokens
from scrapy_rep.protocol.usage import Judgement
from scrapy_rep.protocol.verdict import ALLOWED_ROBOTSTXT, Verdict
from scrapy_rep.utils.requests import origin_of_request, stripped_url
from scrapy_rep.utils.text import printable_request

SCHEMES: Final = ("http:", "https:", "ftp:")
"""Prefixes of the URLs to which a robots.txt can apply."""
_new: Final = tuple.__new__


class Decision(NamedTuple):
    """The decision on a request; without a verdict, what is known before a lookup."""

    origin: Origin | None
    """None if the URL has no origin that all URL parsers agree on."""
    target: str
    """Path and query of the URL in canonical form; of several spellings, the one that decided."""
    tokens: Tokens
    verdict: Verdict | None
    """None if a lookup of robots.txt is needed."""
    entry: Entry | None = None
    """The entry of the origin in the cache: its rules in memory. None if the entry is missing, or
    an override decided."""
    override: Override | None = None
    judgement: Judgement | None = None
    """The judgement of the usage preferences; None if no purposes are declared, or the request was
    decided without them."""


class Decider:
    """Decides on requests, from memory or after lookups; doesn't drop, count or announce any."""

    def __init__(self, crawler: Crawler, lookups: Lookups, overrides: Overrides) -> None:
        self._lookups = lookups
        self._known = lookups.cache.known_entry
        self._overrides = overrides
        self._has_overrides = bool(overrides)
        self.tokens: ProductTokens = ProductTokens.of(crawler)
        self.usage_judge: UsageJudge = UsageJudge.of(crawler)
        # Read for each request.
        self._purposes = self.usage_judge.purposes
        self._tokens_of = self.tokens.of_request

    def known_decision(self, request: Request) -> Decision | None:
        """Return the decision on ``request``; None if no robots.txt can apply to its URL.

        Doesn't wait: if robots.txt is not in memory, the decision has no verdict. A URL without a
        clear origin is disallowed. ``dont_obey_robotstxt`` doesn't matter. Raises ValueError if the
        meta of ``request`` has unknown purposes.
        """
        url = request.url
        try:
            origin, target = split_url(url)
        except ValueError:
            if not url.startswith(SCHEMES):
                url = stripped_url(url)
                if not url.lower().startswith(SCHEMES):
                    return None
            try:
                origin, target = split_url(url)
            except ValueError:
                return Decision(None, "", (), NO_ORIGIN)
        tokens = self._tokens_of(request)
        override = judgement = None
        if self._has_overrides and (override := self._overrides.of_host(origin.host)):
            tokens = override.tokens or tokens
            if not override.tokens:
                target, verdict = strictest_verdict(
                    request.url, target, tokens, partial(self._overrides.verdict, override)
                )
                return Decision(origin, target, tokens, verdict, None, override)
        entry = self._known(origin)
        if entry is None:
            # SPEC S-9
            verdict = ALLOWED_ROBOTSTXT if target == ROBOTSTXT else None
            return Decision(origin, target, tokens, verdict, None, override)
        # A URL with none of these characters is sent in one spelling by all handlers.
        if (
            "%" in target
            or "/." in target
            or "//" in target
            or ";" in target
            or target[-1] == "?"
            or url[0] in "fF"  # ftp
            or not url.isascii()
        ):
            target, verdict = strictest_verdict(request.url, target, tokens, entry.verdict)
        else:
            verdict = entry.verdict(target, tokens)
        if self._purposes or PURPOSES_KEY in request.meta:
            verdict, judgement = self.usage_judge.judge(request, entry, target, tokens, verdict)
        # The same as Decision(…), in half the time.
        return _new(Decision, (origin, target, tokens, verdict, entry, override, judgement))

    async def decision(
        self, request: Request, decision: Decision, *, stays: bool = False
    ) -> Decision:
        """Return the decision on ``request`` after a lookup.

        ``decision`` is that of ``known_decision``, without a verdict. Raises CrawlClosingError as
        ``Lookups.result`` does, and LookupError without an origin, or a verdict after the lookup.
        """
        origin, target, tokens, _, _, override, _ = decision
        if origin is None:
            raise LookupError(f"{printable_request(request)} has no origin")
        entry = (await self._lookups.result(origin, tokens, request, stays=stays)).entry
        target, verdict = strictest_verdict(request.url, target, tokens, entry.verdict)
        if verdict is None:
            raise LookupError(f"no rules of {origin} for {tokens}")
        verdict, judgement = self.usage_judge.judge(request, entry, target, tokens, verdict)
        return Decision(origin, target, tokens, verdict, entry, override, judgement)

    async def verdict_on_hop(self, hop: Request, start: Origin) -> Verdict | None:
        """Return the verdict on ``hop``, a redirect of the robots.txt of ``start``, or None.

        The rules of another origin are also read in the store, but not fetched. Usage preferences
        don't apply to robots.txt, so the meta of ``hop`` gets an empty list of purposes.
        """
        hop.meta[PURPOSES_KEY] = ()
        decision = self.known_decision(hop)
        if decision is None:
            return None
        # The policy ``disallow`` of an override applies to all of a host, also to its robots.txt.
        if decision.override is not None and decision.override.policy == "disallow":
            return DISALLOWED
        origin, target, tokens, verdict, *_ = decision
        if verdict is not None or origin is None or origin == start:
            return verdict
        entry = await self._lookups.stored_entry(origin, tokens)
        if entry is None:
            return None
        return strictest_verdict(hop.url, target, tokens, entry.verdict)[1]

    def start_lookup(self, request: Request, done: Done) -> None:
        """Look up the robots.txt for ``request``, and call ``done`` when the lookup has ended.

        Raises CrawlClosingError if the crawl has ended, and ValueError if the URL has no origin.
        """
        origin = origin_of_request(request)
        self._lookups.join(origin, self.tokens_of(request, origin), request, done)

    def tokens_of(self, request: Request, origin: Origin) -> Tokens:
        """Return the product tokens of an override of ``origin``, else those of ``request``."""
        override = self.override_of(origin)
        return (override.tokens if override is not None else ()) or self.tokens.of_request(request)

    def override_of(self, origin: Origin) -> Override | None:
        return self._overrides.of_host(origin.host) if self._has_overrides else None

    def needs_robotstxt(self, origin: Origin) -> bool:
        """Return whether robots.txt decides on the pages of ``origin``, not an override."""
        override = self.override_of(origin)
        return override is None or bool(override.tokens)

    def origin_governing(self, request: Request) -> Origin | None:
        """Return the origin whose robots.txt decides on ``request``; None if none does.

        None does for robots.txt itself, with ``dont_obey_robotstxt``, without a clear origin, or
        with an override without product tokens.
        """
        url = request.url
        if request.meta.get("dont_obey_robotstxt"):
            return None
        try:
            origin = origin_of_request(request)
        except ValueError:
            return None
        # The target is slow to find, so it is only read if it may be that of a robots.txt.
        if ("%" in url or ROBOTSTXT in url) and target_of(stripped_url(url)) == ROBOTSTXT:
            return None  # SPEC S-9
        return origin if self.needs_robotstxt(origin) else None
