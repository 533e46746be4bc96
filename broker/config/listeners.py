"""Parses and checks `listeners`, `advertised.listeners` and `listener.security.protocol.map`.

Without process.roles a controller listener is accepted but not opened: the controller is in this process.
Source: Kafka 4.4 `KafkaConfig.listeners`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.wire.configdef import ConfigError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's security protocols; the place of each is its id in requests and records."""
SASL_PROTOCOLS = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
"""The protocols whose clients authenticate with SASL."""
TLS_PROTOCOLS = frozenset({"SSL", "SASL_SSL"})
"""The protocols that are encrypted."""


class Endpoint(NamedTuple):
    """A named address. An empty host means all interfaces; port 0 means any free port."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_endpoints(key: str, items: tuple[str, ...]) -> list[Endpoint]:
    """Parse `NAME://host:port` items. ConfigError for an invalid item or a repeated name."""
    endpoints = [_parse_endpoint(key, item) for item in items]
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) < len(names):
        raise ConfigError(f"Each listener must have a different name, {key}: {','.join(items)}")
    return endpoints


def check_ports(endpoints: list[Endpoint]) -> None:
    """Raise ConfigError if two listeners have the same host and port."""
    taken: set[tuple[str, int]] = set()
    for endpoint in endpoints:
        if endpoint.port and (endpoint.host, endpoint.port) in taken:
            raise ConfigError(f"Each listener must have a different port, listeners: {endpoint} repeats one")
        taken.add((endpoint.host, endpoint.port))


def _parse_endpoint(key: str, item: str) -> Endpoint:
    name, separator, address = item.partition("://")
    host, colon, port = address.rpartition(":")
    if not (name and separator and colon and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise ConfigError(f"Error creating broker listeners from '{item}' ({key}): it must be NAME://host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return Endpoint(name.upper(), host, int(port))


def parse_address(key: str, text: str) -> Endpoint:
    """Parse `host:port` of a listener without Kafka's protocol. ConfigError if it has another form."""
    host, colon, port = text.strip().rpartition(":")
    if not (colon and port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise ConfigError(f"Invalid value {text} for configuration {key}: it must be host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return Endpoint("METRICS", host, int(port))


def parse_protocol_map(text: str) -> dict[str, str]:
    """Parse `NAME:PROTOCOL` pairs; returns the protocols by listener name."""
    protocols: dict[str, str] = {}
    for pair in filter(None, (item.strip() for item in text.split(","))):
        name, colon, protocol = pair.partition(":")
        if not (name and colon) or protocol.upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map has '{pair}', which is not NAME:PROTOCOL with a protocol of "
                f"{', '.join(SECURITY_PROTOCOLS)}"
            )
        protocols[name.upper()] = protocol.upper()
    return protocols


def check_protocols(endpoints: list[Endpoint], protocols: dict[str, str]) -> None:
    """Raise ConfigError if the protocol of a listener is unknown."""
    for endpoint in endpoints:
        if endpoint.name not in protocols:
            raise ConfigError(f"No security protocol defined for listener {endpoint.name}")


def check_advertised(advertised: list[Endpoint], listeners: list[Endpoint]) -> None:
    """Raise ConfigError if an advertised listener is not a listener, or its address is a wildcard."""
    names = {endpoint.name for endpoint in listeners}
    for endpoint in advertised:
        if endpoint.name not in names:
            raise ConfigError(
                f"advertised.listeners listener names must be equal to or a subset of the ones defined in listeners: "
                f"{endpoint.name} is not in listeners"
            )
        if endpoint.host in {"0.0.0.0", "::"}:
            raise ConfigError(
                f"advertised.listeners cannot use the nonroutable meta-address {endpoint.host}. "
                "Use a routable IP address."
            )
