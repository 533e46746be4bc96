"""The connections of this broker to the other nodes of the cluster: one client for each node and purpose.

Purposes have connections of their own, so that a fetch that waits for records does not delay anything else. The address
of a node is asked for with every request, so a node that was registered with another one is found there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.net.network_client import NetworkClient

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.net.login import Login
    from barnabas.broker.net.outgoing import Connect


class InterBroker:
    """Clients of the other nodes, made when they are first needed."""

    def __init__(
        self,
        loop: Loop,
        connect: Connect,
        endpoint: Callable[[int], tuple[str, int] | None],
        *,
        client_id: str,
        software_version: str = "unknown",
        login: Callable[[], Login] | None = None,
    ) -> None:
        """`endpoint` gives host and port of a node's inter-broker listener, None while the node has none.

        `login` makes the log-in of each connection; None: they need none.
        """
        self._login = login
        self._loop = loop
        self._connect = connect
        self._endpoint = endpoint
        self._client_id = client_id
        self._software_version = software_version
        self._clients: dict[tuple[int, str], NetworkClient] = {}

    def client(self, node_id: int, purpose: str) -> NetworkClient:
        """The client for a node and a purpose, always the same one."""
        key = (node_id, purpose)
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = NetworkClient(
                self._loop,
                self._connect,
                lambda: self._endpoint(node_id),
                client_id=f"{self._client_id}-{purpose}-{node_id}",
                software_version=self._software_version,
                login=self._login,
            )
        return client

    def forget(self, node_id: int) -> None:
        """Close the clients of a node that is no longer registered."""
        for key in [key for key in self._clients if key[0] == node_id]:
            self._clients.pop(key).close()

    def close(self) -> None:
        """Close all clients: what waits fails with NETWORK_EXCEPTION."""
        for client in list(self._clients.values()):
            client.close()
