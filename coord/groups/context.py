"""What a coordinator may know of the client that asks."""

from __future__ import annotations

from typing import NamedTuple


class ClientContext(NamedTuple):
    """The client behind one request."""

    client_id: str = ""
    client_host: str = ""
    """Kafka's `InetAddress.toString()`: "/" and the address."""
    api_version: int = 0
