"""Public addresses may be connected to; whatever leads into a local network may not."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamias.permit.addresses import forbidden


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "100.63.255.255",
        "100.128.0.0",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.169.0.0",
        "198.20.0.0",
        "223.255.255.255",
        "2001:4860:4860::8888",
        "2606:4700:4700::1111",
        "2a00:1450:4001:830::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "::8.8.8.8",
    ],
)
def test_a_public_address_may_be_connected_to(address):
    assert forbidden(address) is None


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "this network's"),
        ("10.0.0.1", "private"),
        ("100.64.0.1", "carrier-grade NAT"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.169.254", "link-local"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.0.0.1", "protocol assignment"),
        ("192.0.0.192", "protocol assignment"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4 relay"),
        ("192.168.1.1", "private"),
        ("198.18.0.1", "benchmarking"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("64:ff9b:1::1", "local NAT64"),
        ("100::1", "discard"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
        ("2001:2::1", "benchmarking"),
        ("2001:10::1", "overlay"),
        ("2001:20::1", "overlay"),
        ("2001:db8::1", "documentation"),
        ("3fff::1", "documentation"),
        ("5f00::1", "segment routing"),
        ("fd00:ec2::254", "private"),
        ("fc00::1", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
        ("ff0e::1", "multicast"),
    ],
)
def test_a_special_address_is_forbidden_by_its_name(address, word):
    assert forbidden(address) == f"{word} address {address}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("::ffff:127.0.0.1", "loopback address 127.0.0.1 in IPv4-mapped ::ffff:7f00:1"),
        ("::ffff:169.254.169.254", "link-local address 169.254.169.254 in IPv4-mapped ::ffff:a9fe:a9fe"),
        ("64:ff9b::7f00:1", "loopback address 127.0.0.1 in NAT64 64:ff9b::7f00:1"),
        ("64:ff9b::a00:1", "private address 10.0.0.1 in NAT64 64:ff9b::a00:1"),
        ("2002:7f00:1::", "loopback address 127.0.0.1 in 6to4 2002:7f00:1::"),
        ("2002:c0a8:101::1", "private address 192.168.1.1 in 6to4 2002:c0a8:101::1"),
        ("::127.0.0.1", "loopback address 127.0.0.1 in IPv4-compatible ::7f00:1"),
        ("::ffff:224.0.0.1", "multicast address 224.0.0.1 in IPv4-mapped ::ffff:e000:1"),
    ],
)
def test_an_ipv4_address_inside_an_ipv6_one_is_judged(address, reason):
    # The standard library's spelling of mapped addresses differs between versions.
    mapped = reason.split(" in ")[0]
    assert (forbidden(address) or "").startswith(mapped + " in ")


@pytest.mark.parametrize("address", ["4000::1", "1000::1", "0:1::1", "e000::1", "2606:4700::1111%eth0"])
def test_what_is_not_global_unicast_is_forbidden(address):
    assert forbidden(address) is not None


@pytest.mark.parametrize(
    "address",
    [
        "",
        " ",
        "localhost",
        "example.org",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "1.1.1.1 ",
        "1.1.1.1/32",
        "[::1]",
        ":::",
        "::1%",
        "::ffff:1.2.3.256",
        "\uff11.1.1.1",
        "1.1.1.1\n",
        "\x00",
        "a" * 9000,
    ],
)
def test_what_is_no_address_is_forbidden(address):
    assert (forbidden(address) or "").startswith("not an IP address: ")


def test_a_reason_quotes_only_the_beginning_of_a_long_text():
    assert len(forbidden("x" * 9000) or "") < 100


@given(st.ip_addresses(v=4))
def test_every_wrapping_of_a_forbidden_ipv4_address_is_forbidden(inner):
    number = int(inner)
    wrapped = [0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80]
    texts = [socket.inet_ntop(socket.AF_INET6, value.to_bytes(16, "big")) for value in wrapped]
    assert [forbidden(text) is None for text in texts] == [forbidden(str(inner)) is None] * 3
