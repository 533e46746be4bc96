"""A minimal client: sends any request in any version and reads the response."""

from __future__ import annotations

import select
import socket
import struct as packing
import time

from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import message_for, request_header_version, response_header_version
from barnabas.wire.messages.groups import FindCoordinatorRequest
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest

WAIT_S = 30.0


class RawClient:
    """One connection, to the first of the addresses.

    A call sends a request and returns its response; `send` and `read` do one half each.
    """

    def __init__(self, bootstrap, client_id="raw"):
        host, port = bootstrap.split(",")[0].rsplit(":", 1)
        self.client_id = client_id
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.sent = []

    def __call__(self, request, version):
        self.send(request, version)
        return self.read()

    def send(self, request, version):
        key = request.api_key
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=len(self.sent), client_id=self.client_id
        )
        body = header.encode(request_header_version(key, version)) + request.encode(version)
        self.sent.append((key, version))
        self.socket.sendall(packing.pack(">i", len(body)) + body)

    def read(self):
        """Wait for the next response and return it."""
        (size,) = packing.unpack(">i", self._take(4))
        frame = self._take(size)
        (correlation_id,) = packing.unpack_from(">i", frame)
        key, version = self.sent[correlation_id]
        start = 4 + (response_header_version(key, version) >= 1)
        return message_for(key)[1].decode(frame[start:], version)

    def has_answer(self):
        """Whether bytes have arrived."""
        return bool(select.select([self.socket], [], [], 0)[0])

    def _take(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data

    def close(self):
        self.socket.close()

    # ---- what most tests begin with

    def find(self, group_id):
        """Wait until the group has a coordinator, and return it."""
        deadline = time.monotonic() + WAIT_S
        while True:
            found = self(FindCoordinatorRequest(coordinator_keys=[group_id]), 6).coordinators[0]
            if found.error_code == 0:
                return found
            assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def create_topic(self, name, partitions=1):
        """Create a topic; gives its id."""
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)]
        (made,) = self(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        assert made.error_code == 0, made
        deadline = time.monotonic() + WAIT_S
        while True:  # Kafka answers before its metadata shows the topic
            asked = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
            (seen,) = self(asked, 12).topics
            if seen.error_code == 0 and all(partition.leader_id >= 0 for partition in seen.partitions):
                return made.topic_id
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def delete_topic(self, name):
        (gone,) = self(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5).responses
        assert gone.error_code == 0, gone


def coordinator_client(bootstrap, group_id):
    """A connection to the coordinator of a group."""
    client = RawClient(bootstrap)
    try:
        found = client.find(group_id)
    finally:
        client.close()
    return RawClient(f"{found.host}:{found.port}")
