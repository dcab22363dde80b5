"""Which hosts and addresses are inside: loopback, private, link-local."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address


def is_private_host(host: str) -> bool:
    """Return whether a host, as a URL names it, is inside, as far as its name tells.

    Knows every spelling of an IPv4 address that resolvers take (``127.1``, ``0x7f000001``).
    """
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return is_private_address(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return is_private_address(IPv4Address(socket.inet_aton(host)))
    except OSError:
        return False


def is_private_address(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is loopback, private, link-local or otherwise not global."""
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is not None:
            return is_private_address(embedded)
    return not address.is_global
