"""The connections of this broker to the other nodes of the cluster: one client for each node and purpose.

Purposes have connections of their own, so that a fetch that waits for records does not delay anything else. The address
of a node is looked up with every request, so a node that was registered with another address is found there.

Invariant: a client can be used as long as this broker runs. Only its connections end, also when its node is not
registered any longer: fetchers and others keep clients, and the node may come back under the same id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.net.client.network_client import NetworkClient

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.login import Login
    from barnabas.broker.net.client.outgoing import Connect


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
        """`endpoint` returns host and port of a node's inter-broker listener, None while the node has none.

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

    def registration_changed(self, node_id: int) -> None:
        """Close the connections to a node's former address, if it is registered with another one now, or no longer.

        Its clients stay, and reach the node again once it is registered again.
        """
        address = self._endpoint(node_id)
        for (client_of, _), client in self._clients.items():
            if client_of == node_id:
                client.disconnect_unless(address)

    def close(self) -> None:
        """Close all clients: requests that wait fail with NETWORK_EXCEPTION."""
        for client in list(self._clients.values()):
            client.close()
