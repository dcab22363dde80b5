"""One worker in made-up time: what it may send, and when."""

import asyncio
from types import SimpleNamespace

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from scrapy_rep.protocol.origin import origin_of
from scrapy_rep.utils.requests import origin_of_request
from tests.admission.parts import Parts
from tests.made_up_time import MadeUpTime
from tests.waiting import settle

SITE = "http://a.example"
DELAY = 2.0


class Worker(Parts):
    """The admission of a crawl, asked as the queue and the wire do."""

    def __init__(self, time=None, *, store=None, **settings):
        crawler = get_crawler(settings_dict=settings)
        crawler.engine = SimpleNamespace(downloader=None, paused=True)
        super().__init__(crawler, time or MadeUpTime(), store=store)
        self.told = []
        """The origins whose requests are to ask again."""
        self.sent_at = {}
        self.admission.on_hold_changed(self.told.append)
        self.hosts = self.admission.hosts

    def beside(self, **settings):
        """Return another worker with the same store and time."""
        return Worker(self.time, store=self.store, **settings)

    def knows_delay(self, site=SITE, delay=DELAY):
        self.knows(origin_of(site), f"User-agent: *\nCrawl-delay: {delay}\n".encode())

    def knows_no_rules(self, site=SITE):
        self.knows(origin_of(site))

    def leaves(self, request):
        """Ask as the queue does: return the text of the reason to wait and its end, or None."""
        return told(self.admission.admit(origin_of(request.url), lambda: request))

    def sending(self, request):
        """Ask as the wire does; return the task, which ends when the store has answered."""
        self.sent_at[request] = self.time.now
        origin, delay = origin_of_request(request), self.delay(request)
        return asyncio.ensure_future(self.admission.hosts.acquire(origin, request, delay))

    def delay(self, request):
        return self.admission.hosts.delays.kept(self.decider.known_decision(request))

    def sends(self, request):
        """Return why the wire does not send ``request`` now, or None."""
        task = self.sending(request)
        settle()
        return told(task.result())

    def ends(self, request, response=None):
        self.admission.hosts.ended(request, self.sent_at[request], response)
        settle()

    def answered(self, request, status=200, retry_after=None):
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self.ends(request, Response(request.url, status=status, headers=headers))

    def reads_pauses(self):
        reading = asyncio.ensure_future(self.admission.hosts.read_pauses())
        settle()
        assert reading.done()


def told(hold):
    return None if hold is None else (hold.reason.text, hold.until)


def page(number=0, site=SITE):
    return Request(f"{site}/{number}")
