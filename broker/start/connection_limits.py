"""The limits of connections from the broker's configuration (`broker/net/limits.py`)."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.broker.config.checks import parse_overrides
from barnabas.broker.config.keys.general import (
    QUOTA_WINDOW_NUM,
    QUOTA_WINDOW_SIZE_SECONDS,
)
from barnabas.broker.config.keys.network import (
    CONNECTIONS_MAX_IDLE_MS,
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_REQUEST_MAX_BYTES,
)
from barnabas.broker.config.keys.own import (
    AUTHENTICATION_TIMEOUT_MS,
    UNAUTHENTICATED_CONNECTIONS_MAX,
    UNAUTHENTICATED_REQUESTS_MAX_BYTES,
)
from barnabas.broker.net.limits import Limits, ListenerLimits

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

logger = logging.getLogger("kafka.network.SocketServer")

Addresses = Mapping[str, tuple[str, ...]]
"""The addresses of host names."""


def connection_limits(config: ServerConfig, addresses: Addresses) -> Limits:
    """The limits; `addresses` has the addresses of the hosts in max.connections.per.ip.overrides."""
    idle_ms = config[CONNECTIONS_MAX_IDLE_MS]
    names = [endpoint.name for endpoint in (*config.listeners, *config.controller_listeners)]
    inter_broker = config.inter_broker_listener
    overrides = parse_overrides(config[MAX_CONNECTIONS_PER_IP_OVERRIDES])
    return Limits(
        max_frame_bytes=config[SOCKET_REQUEST_MAX_BYTES],
        max_connections=config[MAX_CONNECTIONS],
        max_connections_per_ip=config[MAX_CONNECTIONS_PER_IP],
        max_connections_of_ip={
            address: limit for host, limit in overrides.items() for address in addresses.get(host, (host,))
        },
        creation_rate=config[MAX_CONNECTION_CREATION_RATE],
        rate_window_s=max(1, config[QUOTA_WINDOW_NUM] - 1) * config[QUOTA_WINDOW_SIZE_SECONDS],
        listeners={
            name: ListenerLimits(
                config.of_listener(MAX_CONNECTIONS, name), config.of_listener(MAX_CONNECTION_CREATION_RATE, name)
            )
            for name in names
        },
        inter_broker_listener=inter_broker if inter_broker in names and len(names) > 1 else None,
        max_queued_bytes=config[QUEUED_MAX_REQUEST_BYTES],
        idle_s=idle_ms / 1000 if idle_ms >= 0 else float("inf"),
        authentication_s=config[AUTHENTICATION_TIMEOUT_MS] / 1000,
        max_unauthenticated=config[UNAUTHENTICATED_CONNECTIONS_MAX],
        max_unauthenticated_bytes=config[UNAUTHENTICATED_REQUESTS_MAX_BYTES],
    )


def named_hosts(config: ServerConfig) -> list[str]:
    """The hosts in max.connections.per.ip.overrides that are no addresses, so that they must be looked up."""
    return [host for host in parse_overrides(config[MAX_CONNECTIONS_PER_IP_OVERRIDES]) if not _is_address(host)]


def look_up(hosts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The addresses of hosts. A name service may be asked, so this must not run in the event loop."""
    addresses: dict[str, tuple[str, ...]] = {}
    for host in hosts:
        try:
            infos = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except OSError as error:
            logger.error("max.connections.per.ip.overrides has no effect for %s: %s", host, error)
            infos = []
        addresses[host] = tuple({str(info[4][0]) for info in infos})
    return addresses


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
