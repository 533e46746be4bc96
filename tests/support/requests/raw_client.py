"""A minimal client: sends any request in any version and reads the response."""

from __future__ import annotations

import select
import socket
import struct as packing
from contextlib import closing

from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import message_for, request_header_version, response_header_version
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest
from barnabas.wire.messages.headers import RequestHeader
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from tests.support.waiting import wait_for

WAIT_S = 60.0
"""Of a connection that is made."""


MOVING = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Answers while a coordinator moves to another broker, of Kafka's too."""


def _connected(addresses):
    """A connection to the first of the addresses that accepts one; the error of the last if none does."""
    for address in addresses:
        host, port = address.rsplit(":", 1)
        try:
            return socket.create_connection((host, int(port)), timeout=WAIT_S)
        except OSError as error:
            last = error
    raise last


class RawClient:
    """One connection, to the first of the addresses that accepts it.

    A call sends a request and returns its response; `send` and `read` do one half each.
    """

    def __init__(self, bootstrap, client_id="raw"):
        self.client_id = client_id
        self.socket = _connected(bootstrap.split(","))
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

        def coordinator():
            coordinator_data = self(FindCoordinatorRequest(coordinator_keys=[group_id]), 6).coordinators[0]
            assert coordinator_data.error_code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE), coordinator_data
            return None if coordinator_data.error_code else coordinator_data

        return wait_for(coordinator, f"the coordinator of {group_id!r}")

    def create_topic(self, name, partitions=1, *, may_exist=False):
        """Create a topic; gives its id."""
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=-1)]
        (created,) = self(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        assert created.error_code in ({0, ErrorCode.TOPIC_ALREADY_EXISTS} if may_exist else {0}), created
        metadata_request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)

        def led():
            (seen,) = self(metadata_request, 12).topics
            is_led = seen.error_code == 0 and all(partition.leader_id >= 0 for partition in seen.partitions)
            return seen.topic_id if is_led else None

        return wait_for(led, f"leaders of {name!r}")  # Kafka answers before its metadata shows the topic

    def delete_topic(self, name):
        (gone,) = self(DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000), 5).responses
        assert gone.error_code == 0, gone


def coordinator_client(bootstrap, group_id):
    """A connection to the coordinator of a group."""
    client = RawClient(bootstrap)
    try:
        coordinator = client.find(group_id)
    finally:
        client.close()
    return RawClient(f"{coordinator.host}:{coordinator.port}")


def ask_coordinator(bootstrap, group_id, request, version, error_of):
    """The answer of a group's coordinator, over a new connection; `error_of(answer)` is its error code.

    Asked again while the coordinator moves or its broker is down.
    """
    errors = []

    def answered():
        with closing(coordinator_client(bootstrap, group_id)) as client:
            response = client(request, version)
        errors[:] = [ErrorCode(error_of(response))]
        return None if error_of(response) in MOVING else response

    what = f"an answer of the coordinator of {group_id!r}"
    return wait_for(answered, lambda: f"{what}, which has said {errors}", errors=(OSError,))
