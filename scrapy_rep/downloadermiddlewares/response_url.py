"""The URL of a response that is not that of its request: it is asked about at the gate, too."""

from __future__ import annotations

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from scrapy_rep import signals, stats
from scrapy_rep.decision.usage import replace_judgement
from scrapy_rep.downloadermiddlewares.gate import Gate
from scrapy_rep.exceptions import RobotsTxtDisallowed
from scrapy_rep.utils.download_slots import SLOT_KEY
from scrapy_rep.utils.log import LimitedLogger
from scrapy_rep.utils.text import printable_request


async def check_response_url(
    crawler: Crawler, gate: Gate, request: Request, response: Response, cause: str
) -> Request | Response:
    """Return ``response`` if its URL is allowed, and note the usage preferences of that URL.

    If the crawl closes before that is known, return a copy of ``request`` for the next crawl.
    ``cause`` is why the URL differs, for the log. Raises RobotsTxtDisallowed if it is disallowed.
    """
    if request.meta.get("dont_obey_robotstxt"):
        return response
    # The URL of the response may have another download slot.
    meta = {key: value for key, value in request.meta.items() if key != SLOT_KEY}
    try:
        hop = Request(response.url, headers=request.headers, meta=meta)
    except ValueError:  # a URL that nothing can be fetched from
        return response
    was, now = gate.decider.known_decision(request), gate.decider.known_decision(hop)
    # Often only the spelling differs: browsers add a slash after the host.
    if now is None or (was is not None and was[:2] == now[:2]):  # origin and target
        return response
    try:
        if await gate.again(hop) is not None:
            return request.replace(dont_filter=True)
    except RobotsTxtDisallowed as error:
        request.meta[signals.META_KEY] = signals.as_meta(error.verdict)
        stats.count(crawler, stats.FORBIDDEN_RESPONSE_COUNT)
        LimitedLogger(__name__, crawler).debug(
            "Dropped the response to %s: %s to %s",
            printable_request(request),
            cause,
            printable_request(hop),
        )
        raise RobotsTxtDisallowed(error.verdict, redirected_to=response.url) from error
    replace_judgement(hop, request)
    return response
