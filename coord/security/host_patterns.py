"""The hosts of an ACL: `*`, an address, or a range of addresses as `10.0.0.0/8` or `2001:db8::/32` (KIP-1276).

An IPv6 address is written as Java does, without `::`, since ACLs are compared with it as text. Source: Kafka 4.4
`CidrUtils`, `SubnetUtils`, `SubnetUtils6`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from barnabas.coord.security.acls import WILDCARD

_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
_IPV4_BITS: Final = 32
_IPV6_BITS: Final = 128
_REMEMBERED: Final = 10_000
Range = tuple[bool, int, int]
"""Whether it is of IPv6; the first and the last address."""


def matches_host(pattern: str, host: str) -> bool:
    """Whether the host of an ACL covers the address of a client."""
    return pattern in (WILDCARD, host) or ("/" in pattern and _is_in_range(pattern, host))


def parse_range(pattern: str) -> Range:
    """The addresses of a range; ValueError, with the reason, if it is none."""
    address, _, prefix = pattern.partition("/")
    is_ipv6 = ":" in pattern
    bits = _IPV6_BITS if is_ipv6 else _IPV4_BITS
    if not (prefix.isascii() and prefix.isdigit() and len(prefix) <= 3 and int(prefix) <= bits):
        raise ValueError(f"Could not parse [{pattern}]: the prefix length must be between 0 and {bits}")
    if is_ipv6:
        network = IPv6Network((IPv6Address(address), int(prefix)), strict=False)
        return True, int(network.network_address), int(network.broadcast_address)
    number = _ipv4(address)
    if number is None:
        raise ValueError(f"Could not parse [{pattern}]")
    hosts = (1 << bits - int(prefix)) - 1
    return False, number & ~hosts, number | hosts


def java_host(host: str) -> str:
    """The text of an address as Java has it; other texts as they are."""
    if ":" not in host:
        return host
    bare, percent, scope = host.partition("%")
    try:
        address = IPv6Address(bare)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    groups = (int(address) >> shift & 0xFFFF for shift in range(112, -1, -16))
    return ":".join(f"{group:x}" for group in groups) + percent + scope


@lru_cache(_REMEMBERED)
def _is_in_range(pattern: str, host: str) -> bool:
    try:
        is_ipv6, first, last = parse_range(pattern)
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return is_ipv6 == (address.version == 6) and first <= int(address) <= last


def _ipv4(text: str) -> int | None:
    """The address as a number; None if the text is no address. Leading zeros do not make a number octal."""
    match = _IPV4.fullmatch(text)
    if match is None:
        return None
    octets = [int(part) for part in match.groups()]
    return int.from_bytes(bytes(octets), "big") if max(octets) < 256 else None
