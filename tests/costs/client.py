"""A client that knows how many bytes it sends, with TLS too, and how many of them the broker still has to receive."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from struct import Struct
from typing import Any, TypeVar

from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import api_versions_response_version, encode_request, message_for, parse_response_header
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes

R = TypeVar("R", bound=Message)
SIZE = Struct(">i")
ANSWER_S = 60.0
GROUP, TRANSACTION, SHARE = 0, 1, 2
"""The types of keys of coordinators."""
RECEIVED = 256 * 1024
CORRELATION_ID = 7
_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


class Stream:
    """A connection without TLS."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=ANSWER_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> int:
        """Send; returns how many bytes that are on the network."""
        self.socket.sendall(data)
        return len(data)

    def receive(self) -> bytes:
        """Some bytes; none at the end of the stream."""
        return self.socket.recv(RECEIVED)


class TlsStream(Stream):
    """A connection with TLS."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        super().__init__(address)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=address[0])
        while not self._shake_hands():
            self._incoming.write(self.socket.recv(RECEIVED))

    def _shake_hands(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self.socket.sendall(self._outgoing.read())
        return True

    def send(self, data: bytes) -> int:
        self._tls.write(data)
        return super().send(self._outgoing.read())

    def receive(self) -> bytes:
        while True:
            try:
                return self._tls.read(RECEIVED)
            except ssl.SSLWantReadError:
                self._incoming.write(super().receive())


class Client:
    """One connection that sends requests and reads their responses."""

    def __init__(self, stream: Stream, client_id: str = "costs") -> None:
        self._stream = stream
        self._client_id = client_id
        self._sent: list[tuple[int, int]] = []
        self._received = b""

    def close(self) -> None:
        """Close the connection."""
        self._stream.socket.close()

    def send(self, request: Message, version: int, pieces: int = 1) -> Iterator[int]:
        """Send a request, in so many pieces; gives how many bytes each is on the network, when it is sent."""
        frame = b"".join(map(chunk_bytes, encode_request(request, version, CORRELATION_ID, self._client_id)))
        self._sent.append((request.api_key, version))
        size = -(-len(frame) // pieces)
        for start in range(0, len(frame), size):
            yield self._stream.send(frame[start : start + size])

    def read(self) -> Any:
        """Wait for the next response."""
        (size,) = SIZE.unpack(self._take(4))
        frame = self._take(size)
        key, version = self._sent.pop(0)
        _, at = parse_response_header(frame, key, version)
        if key == 18:
            version = api_versions_response_version(frame[at:], version)
        return message_for(key)[1].decode(frame[at:], version)

    def _take(self, size: int) -> bytes:
        while len(self._received) < size:
            received = self._stream.receive()
            if not received:
                raise ConnectionError("the broker has closed the connection")
            self._received += received
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and wait for its response."""
        list(self.send(request, version))
        return self.read()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        assignment: list[list[int]] | None = None,
        configs: Mapping[str, str] | None = None,
    ) -> bytes:
        """Create a topic; returns its id. `assignment` are the replicas of each partition."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=-1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        if assignment is not None:
            topic.num_partitions = -1
            topic.assignments = [
                CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
                for index, replicas in enumerate(assignment)
            ]
        (created,) = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
        check(created.error_code, "CreateTopics")
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        (seen,) = self.ask(request, 12).topics
        check(seen.error_code, "Metadata")
        return bytes(seen.topic_id)


def find_coordinator(client: Client, key: str, key_type: int = GROUP) -> None:
    """Wait until there is a coordinator: its topic is created by the first request for one."""
    request = FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    when_available(lambda: client.ask(request, 6), lambda response: response.coordinators[0].error_code)


def when_available(ask: Callable[[], R], error_of: Callable[[R], int]) -> R:
    """The answer of a coordinator, which is asked again while it is made or loads. RuntimeError for another error."""
    deadline = time.monotonic() + ANSWER_S
    while (code := error_of(response := ask())) in _LATER and time.monotonic() < deadline:
        time.sleep(0.02)
    check(code, type(response).__name__)
    return response


def check(code: int, what: str) -> None:
    """RuntimeError for an error code other than 0."""
    if code:
        raise RuntimeError(f"{what} failed with error code {code}")
