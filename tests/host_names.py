"""Names of hosts that are all on loopback."""

import socket

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer


@implementer(IHostnameResolver)
class LoopbackResolver:
    def resolveHostName(self, receiver, name, portNumber=0, *args, **kwargs):  # noqa: N803
        receiver.resolutionBegan(self)
        version, address = (IPv6Address, "::1") if ":" in name else (IPv4Address, "127.0.0.1")
        receiver.addressResolved(version("TCP", address, portNumber))
        receiver.resolutionComplete()
        return self


def resolve_to_loopback(monkeypatch):
    """Resolve all names to loopback, in Twisted and in asyncio. A generator, for a fixture."""
    from twisted.internet import reactor

    real = socket.getaddrinfo

    def getaddrinfo(host, *args, **kwargs):
        return real("::1" if ":" in str(host) else "127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    # Versions of Scrapy before 2.19 have a resolver of their own.
    monkeypatch.setattr(socket, "gethostbyname", lambda name: "127.0.0.1")
    before = reactor.installNameResolver(LoopbackResolver())
    yield
    reactor.installNameResolver(before)
