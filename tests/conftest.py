"""What tests of all kinds share."""

import asyncio
import os
import socket
import sys
from functools import wraps
from inspect import iscoroutinefunction

import pytest
import pytest_twisted
from hypothesis import HealthCheck, settings
from scrapy.core import downloader
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer

from tests import forking
from tests.acid.certificate import make_certificate
from tests.crawling.process import CrawlProcess
from tests.crawling.web import Web
from tests.redis_server import RedisServer, needs_redis
from tests.waiting import Clock, event_loop, run_to_end

# A machine that is busy is no test that is slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("mutants", settings.get_profile("patient"), max_examples=20)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "patient"))


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    needs_redis()
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run coroutines as those of Scrapy, or as tasks of asyncio where they are marked so.

    Tests marked ``event_loop`` run on an event loop of their own, which ``settle`` lets go on.
    """
    test = pyfuncitem.obj
    if pyfuncitem.get_closest_marker("in_asyncio") is not None and iscoroutinefunction(test):
        pyfuncitem.obj = _in_asyncio(test)
    elif iscoroutinefunction(test):
        pytest_twisted.ensureDeferred(getattr(test, "__func__", test))
    if pyfuncitem.get_closest_marker("event_loop") is None:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    with event_loop():
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    return True


def _in_asyncio(test):
    """Run a coroutine function as a task, as Scrapy runs its components."""

    @pytest_twisted.ensureDeferred
    @wraps(test)
    async def run(*args, **kwargs):
        await Deferred.fromFuture(asyncio.ensure_future(test(*args, **kwargs)))

    return run


@implementer(IHostnameResolver)
class _LoopbackResolver:
    def resolveHostName(self, receiver, name, portNumber=0, *args, **kwargs):  # noqa: N803 - of the interface
        receiver.resolutionBegan(self)
        version, address = (IPv6Address, "::1") if ":" in name else (IPv4Address, "127.0.0.1")
        receiver.addressResolved(version("TCP", address, portNumber))
        receiver.resolutionComplete()
        return self


@pytest.fixture
def all_names_are_here(monkeypatch):
    """Resolve all names to loopback, in Twisted and in asyncio."""
    from twisted.internet import reactor

    real = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        return real("::1" if ":" in str(host) else "127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    # Versions of Scrapy before 2.19 have a resolver of their own.
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "127.0.0.1")
    before = reactor.installNameResolver(_LoopbackResolver())
    yield
    reactor.installNameResolver(before)


@pytest.fixture(scope="session")
def web():
    web = Web()
    yield web
    web.close()


@pytest.fixture(autouse=True)
def _no_crawl_stays():
    yield
    while CrawlProcess.started:
        CrawlProcess.started.pop().kill()


@pytest.fixture
def run_scrapy(request):
    """Run ``scrapy *arguments`` to its end: started where a test is marked so, else forked."""
    marked = request.node.get_closest_marker("real_process") is not None

    def run(*arguments, cwd, stdin=""):
        if not marked:
            return forking.run("-m", "scrapy", *arguments, cwd=cwd, input=stdin)
        return run_to_end(sys.executable, "-m", "scrapy", *arguments, cwd=cwd, input=stdin)

    return run


@pytest.fixture
def project(tmp_path):
    """A function that makes a project of Scrapy with settings, in the folder of the test."""

    def make(settings):
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
        (tmp_path / "settings.py").write_text(settings)

    return make


@pytest.fixture
def clock(monkeypatch):
    """The clocks of scrapy_rep, to be moved."""
    return Clock(monkeypatch)


@pytest.fixture
def just_started(monkeypatch):
    """A machine that was just started: the clock of Scrapy's download slots begins at 0.

    Scrapy before 2.19 counts from the epoch. For all clocks at once: ``make test-just-started``.
    """
    if hasattr(downloader, "monotonic"):
        real = downloader.monotonic
        start = real()
        monkeypatch.setattr(downloader, "monotonic", lambda: real() - start)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A file with a key and a certificate for loopback, signed by itself."""
    return make_certificate(tmp_path_factory.mktemp("tls") / "loopback.pem").as_posix()
