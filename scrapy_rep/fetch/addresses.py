"""Determines whether hosts and addresses are private: loopback, private networks, link-local."""

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

_LOOPBACK_NAMES: Final = frozenset(
    {"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"}
)
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052 §2.1
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291 §2.5.5.1


def is_private_host(host: str) -> bool:
    """Return whether the host of a URL is a private address or ``localhost``, without DNS.

    IPv4 addresses may have any form that resolvers accept, such as ``127.1`` or ``0x7f000001``.
    """
    host = host.strip("[]").rstrip(".").lower()
    if host in _LOOPBACK_NAMES or host.endswith(".localhost"):
        return True
    # The last part of an IPv4 address is a number in all its forms.
    if ":" not in host and not host.rpartition(".")[2][:1].isdigit():
        return False
    try:
        return is_private_address(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return is_private_address(IPv4Address(socket.inet_aton(host)))
    except OSError:
        return False


def resolves_to_private_address(host: str) -> bool:
    """Return whether a host name resolves to a private address; False if it can't be resolved.

    This call blocks until the resolver has answered.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return any(is_private_address(ip_address(str(f[4][0]).partition("%")[0])) for f in found)


def is_private_address(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address, or the IPv4 address inside of it, is no global unicast address."""
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        if embedded is not None:
            return is_private_address(embedded)
        if address.is_site_local:
            return True
    return not address.is_global or address.is_multicast or address.is_reserved
