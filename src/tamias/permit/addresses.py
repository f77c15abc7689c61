"""Addresses that may be connected to: public unicast ones, so that no page sends us to a local network.

The named networks are IANA's special-purpose registries; `ipaddress` alone lets several of them pass.
"""

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

_NAMED = (
    ("unspecified", "0.0.0.0/32"),
    ("this network's", "0.0.0.0/8"),
    ("private", "10.0.0.0/8"),
    ("carrier-grade NAT", "100.64.0.0/10"),
    ("loopback", "127.0.0.0/8"),
    ("link-local", "169.254.0.0/16"),
    ("private", "172.16.0.0/12"),
    ("protocol assignment", "192.0.0.0/24"),
    ("documentation", "192.0.2.0/24"),
    ("6to4 relay", "192.88.99.0/24"),
    ("private", "192.168.0.0/16"),
    ("benchmarking", "198.18.0.0/15"),
    ("documentation", "198.51.100.0/24"),
    ("documentation", "203.0.113.0/24"),
    ("multicast", "224.0.0.0/4"),
    ("broadcast", "255.255.255.255/32"),
    ("reserved", "240.0.0.0/4"),
    ("unspecified", "::/128"),
    ("loopback", "::1/128"),
    ("local NAT64", "64:ff9b:1::/48"),
    ("discard", "100::/64"),
    ("Teredo", "2001::/32"),
    ("benchmarking", "2001:2::/48"),
    ("overlay", "2001:10::/28"),
    ("overlay", "2001:20::/28"),
    ("drone identifier", "2001:30::/28"),
    ("protocol assignment", "2001::/23"),
    ("documentation", "2001:db8::/32"),
    ("documentation", "3fff::/20"),
    ("segment routing", "5f00::/16"),
    ("private", "fc00::/7"),
    ("link-local", "fe80::/10"),
    ("site-local", "fec0::/10"),
    ("multicast", "ff00::/8"),
)
_NETWORKS = tuple((word, ip_network(network)) for word, network in _NAMED)
_GLOBAL_UNICAST = ip_network("2000::/3")

_CARRIES_IPV4 = (
    ("IPv4-mapped", ip_network("::ffff:0:0/96"), 0),
    ("NAT64", ip_network("64:ff9b::/96"), 0),
    ("6to4", ip_network("2002::/16"), 80),
    ("IPv4-compatible", ip_network("::/96"), 0),
)
"""IPv6 addresses that lead to an IPv4 one, and how many bits stand to the right of it."""


def forbidden(address: str) -> str | None:
    """Return why an address may not be connected to; None for a public one.

    >>> forbidden("169.254.169.254"), forbidden("::127.0.0.1"), forbidden("9.9.9.9")
    ('link-local address 169.254.169.254', 'loopback address 127.0.0.1 in IPv4-compatible ::7f00:1', None)
    """
    try:
        parsed = IPv6Address(address) if ":" in address else IPv4Address(address)
    except AddressValueError:
        return f"not an IP address: {address[:64]!r}"
    return _reason4(parsed) if isinstance(parsed, IPv4Address) else _reason6(parsed)


def is_address(text: str) -> bool:
    """Return whether it is an IP address and no name."""
    try:
        IPv6Address(text) if ":" in text else IPv4Address(text)
    except AddressValueError:
        return False
    return True


def _reason4(address: IPv4Address) -> str | None:
    return _named(address) or (None if _is_public(address) else f"not a public address {address}")


def _reason6(address: IPv6Address) -> str | None:
    named = _named(address)
    if named is not None:
        return named
    if address.scope_id is not None:
        return f"address with a zone {address}"
    for word, network, right in _CARRIES_IPV4:
        if address in network:
            inner = _reason4(IPv4Address(int(address) >> right & 0xFFFFFFFF))
            return None if inner is None else f"{inner} in {word} {address}"
    public = _is_public(address) and address in _GLOBAL_UNICAST
    return None if public else f"not a public address {address}"


def _named(address: IPv4Address | IPv6Address) -> str | None:
    return next((f"{word} address {address}" for word, network in _NETWORKS if address in network), None)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_link_local or address.is_unspecified
    )


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
