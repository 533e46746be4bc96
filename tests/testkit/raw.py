"""Requests on a connection of their own, in any version."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.testing import Cluster
    from barnabas.wire.schema import Message


class Raw:
    """Asks a cluster; each request has a connection of its own."""

    def __init__(self, cluster: Cluster) -> None:
        host, port = cluster.bootstrap_servers.rsplit(":", 1)
        self._address = host, int(port)

    def ask(self, request: Message, version: int, answered_in: int | None = None) -> Message | None:
        """The response, None if the connection was closed instead."""
        with socket.create_connection(self._address, timeout=10) as connection:
            connection.sendall(b"".join(map(chunk_bytes, encode_request(request, version, 1, "raw"))))
            data = b""
            while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
                more = connection.recv(65536)
                if not more:
                    return None
                data += more
        read_as = version if answered_in is None else answered_in
        _, position = parse_response_header(data[4:], request.api_key, read_as)
        return message_for(request.api_key)[1].decode(data[4 + position :], read_as)

    def api_versions(self, version: int) -> ApiVersionsResponse:
        """ApiVersions; one of a version after 3 is read as version 0, which says that it is not served."""
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        response = self.ask(request, version, 0 if version > 3 else None)
        assert isinstance(response, ApiVersionsResponse)
        return response

    def consumer_group_heartbeat(self, version: int) -> ConsumerGroupHeartbeatResponse | None:
        """A first heartbeat."""
        request = ConsumerGroupHeartbeatRequest(group_id="g", rebalance_timeout_ms=1000, subscribed_topic_names=["t"])
        request.topic_partitions = []
        response = self.ask(request, version)
        assert response is None or isinstance(response, ConsumerGroupHeartbeatResponse)
        return response
