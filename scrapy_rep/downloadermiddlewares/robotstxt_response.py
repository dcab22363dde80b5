"""The downloader middleware closest to the engine, which decides on the URLs of responses."""

from collections.abc import Awaitable
from typing import Final

from scrapy import Request
from scrapy.http import Response

from scrapy_rep.admission.ticket import TICKET_KEY
from scrapy_rep.downloadermiddlewares.decide_again import DecideAgain
from scrapy_rep.downloadermiddlewares.robotstxt_fetch import OutermostMiddleware
from scrapy_rep.utils.per_crawl import get_part

_CHANGED: Final = "another middleware has changed its URL"


class RobotsTxtResponseMiddleware(OutermostMiddleware):
    """The downloader middleware closest to the engine: its order must be the lowest.

    A response is checked again if another middleware has changed its URL. A middleware for a web
    service may do this, for example, if the service has followed a redirect.
    """

    def process_response(
        self, request: Request, response: Response
    ) -> Response | Awaitable[Request | Response]:
        """Let ``response`` pass if it has the URL that was decided on, else decide on its URL.

        Raises RobotsTxtDisallowed if the URL is disallowed. If the crawl closes before that is
        known, the result may be a copy of ``request`` for the scheduler.
        """
        ticket = request.meta.pop(TICKET_KEY, None)
        url = ticket[0] if isinstance(ticket, tuple) else request.url
        if response.url == url or (again := get_part(self._crawler, DecideAgain)) is None:
            return response
        return again.check_response_url(request, response, _CHANGED)
