"""The client that sent a request."""

from __future__ import annotations

from typing import NamedTuple


class ClientContext(NamedTuple):
    """What a coordinator knows of the client."""

    client_id: str = ""
    client_host: str = ""
    """Kafka's `InetAddress.toString()`: "/" and the address."""
    api_version: int = 0
