"""Which hosts are inside."""

from scrapy_rep.fetch.redirects import is_private_host, resolves_to_private_address

INSIDE = """
    localhost LOCALHOST. a.localhost localhost.localdomain ip6-localhost
    127.0.0.1 127.1 2130706433 0x7f000001 0177.0.0.1 0.0.0.0
    10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 224.0.0.1 240.0.0.1
    ::1 [::1] fe80::1 fe80::1%eth0 fd00::1 ff02::1 fec0::1
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:192.168.0.1 2002:7f00:1:: 64:ff9b::7f00:1 ::127.0.0.1
"""
OUTSIDE = """
    example.com localhost.example.com a.b
    8.8.8.8 2606:4700::1111 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::
"""


def test_which_hosts_are_inside():
    assert [host for host in INSIDE.split() if not is_private_host(host)] == []
    assert [host for host in OUTSIDE.split() if is_private_host(host)] == []


def test_a_name_is_where_it_leads():
    assert resolves_to_private_address("localhost")
    assert not resolves_to_private_address("name.invalid")
    assert not resolves_to_private_address("a" * 300)
