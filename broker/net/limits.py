"""The limits of the transport, each from one config key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

UNLIMITED = 2147483647
"""A limit of connections, or of connections per second, that is not set: the largest INT of a config key."""


class ListenerLimits(NamedTuple):
    """The limits of one listener (`listener.name.<name>.` before the key)."""

    max_connections: int = UNLIMITED
    creation_rate: int = UNLIMITED


class Limits:
    """The limits of connections; the defaults are the keys' defaults."""

    __slots__ = (
        "authentication_s",
        "creation_rate",
        "idle_s",
        "inter_broker_listener",
        "listeners",
        "max_connections",
        "max_connections_of_ip",
        "max_connections_per_ip",
        "max_frame_bytes",
        "max_queued_bytes",
        "max_unauthenticated",
        "max_unauthenticated_bytes",
        "rate_window_s",
    )

    def __init__(
        self,
        *,
        max_frame_bytes: int = 104857600,
        max_connections: int = UNLIMITED,
        max_connections_per_ip: int = UNLIMITED,
        max_connections_of_ip: Mapping[str, int] | None = None,
        creation_rate: int = UNLIMITED,
        rate_window_s: float = 10.0,
        listeners: Mapping[str, ListenerLimits] | None = None,
        inter_broker_listener: str | None = None,
        max_queued_bytes: int = -1,
        idle_s: float = 600.0,
        authentication_s: float = 30.0,
        max_unauthenticated: int = 1000,
        max_unauthenticated_bytes: int = 33554432,
    ) -> None:
        self.max_frame_bytes = max_frame_bytes  # socket.request.max.bytes
        self.max_queued_bytes = max_queued_bytes  # queued.max.request.bytes
        self.max_connections = max_connections  # max.connections
        self.max_connections_per_ip = max_connections_per_ip  # max.connections.per.ip
        self.max_connections_of_ip = max_connections_of_ip or {}  # max.connections.per.ip.overrides, by address
        self.creation_rate = creation_rate  # max.connection.creation.rate, connections a second
        self.rate_window_s = rate_window_s  # the time over which the rate is measured (quota.window.*)
        self.listeners = listeners or {}
        self.inter_broker_listener = inter_broker_listener  # is exempt from the limits of the whole broker
        self.idle_s = idle_s  # connections.max.idle.ms
        self.authentication_s = authentication_s  # barnabas.authentication.timeout.ms
        self.max_unauthenticated = max_unauthenticated  # barnabas.unauthenticated.connections.max
        self.max_unauthenticated_bytes = max_unauthenticated_bytes  # barnabas.unauthenticated.requests.max.bytes
