"""The client that sent a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class ClientContext(NamedTuple):
    """The properties of a client that a coordinator uses."""

    client_id: str = ""
    client_host: str = ""
    """Kafka's `InetAddress.toString()`: "/" and the address."""
    api_version: int = 0
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may see a topic; None: every one. It holds for the principal of the request, not longer."""
