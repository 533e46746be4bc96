"""Addresses and names of hosts in settings."""

from __future__ import annotations

import ipaddress
import socket


def is_address(text: str) -> bool:
    """Whether a text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def addresses_of(host: str) -> tuple[str, ...]:
    """The addresses of a host, none if the name does not resolve. May wait for a name service, so not for the loop."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return tuple(dict.fromkeys(str(info[4][0]) for info in found))
