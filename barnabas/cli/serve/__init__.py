"""`barnabas serve`: its options, what they mean together, and the start of a broker or a cluster.

`run` is called by the command line itself; `command` is the same command for help pages and completion. `cluster` has
the options of `--brokers`, `secure` those of `--secure`. Here is how the value of a single option is read.
"""

from __future__ import annotations

from collections.abc import Sequence


class UsageError(Exception):
    """The command line cannot be understood; the text is one sentence."""


def sets(texts: Sequence[str]) -> dict[str, str]:
    """The keys and values of `--set`."""
    keys: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--set must be KEY=VALUE, as in --set num.partitions=3, not {text!r}")
        keys[key.strip()] = value.strip()
    return keys


def host_and_port(address: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of an option; an IPv6 address keeps its brackets."""
    host, colon, port = address.rpartition(":")
    bare_ipv6 = ":" in host and not (host.startswith("[") and host.endswith("]"))
    if not colon or bare_ipv6 or "/" in host or " " in host:
        raise UsageError(f"{option} must be HOST:PORT, as in 127.0.0.1:9092 or [::1]:9092, not {address!r}")
    if not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise UsageError(f"{option} needs a port between 0 and 65535, not {port!r}")
    return host, int(port)
