"""The limits of the transport, each from one of Kafka's config keys."""

from __future__ import annotations


class Limits:
    """What connections may use; the defaults are Kafka's."""

    __slots__ = ("idle_s", "max_connections", "max_connections_per_ip", "max_frame_bytes", "max_queued_bytes")

    def __init__(
        self,
        *,
        max_frame_bytes: int = 104857600,
        max_connections: int = 2147483647,
        max_connections_per_ip: int = 2147483647,
        max_queued_bytes: int = -1,
        idle_s: float = 600.0,
    ) -> None:
        self.max_frame_bytes = max_frame_bytes  # socket.request.max.bytes
        self.max_queued_bytes = max_queued_bytes  # queued.max.request.bytes
        self.max_connections = max_connections  # max.connections
        self.max_connections_per_ip = max_connections_per_ip  # max.connections.per.ip
        self.idle_s = idle_s  # connections.max.idle.ms
