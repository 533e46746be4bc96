"""A broker without sockets and event loop: tests pass bytes in, take bytes out, and set the clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import Any, TypeVar, cast

from barnabas.broker.apis.dispatcher import LARGE_REQUEST_BYTES, Dispatcher
from barnabas.broker.apis.registry import BROKER
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.context import Broker
from barnabas.broker.net.connection import Connection
from barnabas.broker.net.frame_buffers import FrameBuffers
from barnabas.broker.start.builder import open_broker
from barnabas.storage.files import Files
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ProtocolError
from barnabas.wire.frame import api_versions_response_version, encode_request, parse_response_header
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.world import START_MS, Clock, Flushes, simulated_world

R = TypeVar("R", bound=Message)
SIZE = Struct(">i")


class InMemory:
    """A process with its own clock, whose clients reach one of its listeners."""

    broker: Broker
    kind = BROKER
    """The kind of the listener, which has the APIs."""
    listener = "PLAINTEXT"
    address = ("127.0.0.1", 9092)
    """The listener's address."""

    def __init__(self, disk: Flushes | None = None) -> None:
        self.clock = Clock()
        self.disk = disk or Flushes()
        """What waits for a disk, but flushes: syncs of the metadata log, checkpoints."""

    def advance(self, seconds: float) -> None:
        """Advance the clock, and run the timers that become due."""
        end = self.clock.now + seconds
        timers = self.broker.loop.timers
        while (deadline := timers.next_deadline()) <= end:
            self.clock.advance(max(0.0, deadline - self.clock.now))
            timers.fire(self.clock.now)
        self.clock.advance(end - self.clock.now)


class MemoryBroker(InMemory):
    """A broker that is its own controller."""

    def __init__(
        self,
        data_dir: Path,
        sets: Mapping[str, str] | None = None,
        profile: str = "dev",
        *,
        files: Files | None = None,
        disk: Flushes | None = None,
        more_dirs: Sequence[Path] = (),
    ) -> None:
        super().__init__(disk)
        self.flushes = Flushes()
        """The flushes of partitions."""
        config = load({"listeners": "PLAINTEXT://127.0.0.1:0", **(sets or {})}, {}, None, profile)
        self.broker = open_broker(
            config,
            [str(path) for path in (data_dir, *more_dirs)],
            simulated_world(self, self.disk, flushes=self.flushes, files=files or Files()),
        )
        self.broker.controller.register_broker([Endpoint(config.listeners[0].name, "127.0.0.1", 9092)])
        self.clients: list[Client] = []

    def client(self, **options: Any) -> Client:
        client = Client(self, **options)
        self.clients.append(client)
        return client

    def run_flush(self) -> None:
        """Run the oldest flush that was kept, and end the turn."""
        self.flushes.run()
        self.broker.loop.end_turn()

    def run_disk(self) -> None:
        """Run the oldest other work that waits for the disk, and end the turn."""
        self.disk.run()
        self.broker.loop.end_turn()

    def run_all(self) -> None:
        """Run everything that waits for the disk, and what follows from it."""
        while self.disk.held or self.flushes.held:
            (self.disk if self.disk.held else self.flushes).run()
            self.broker.loop.end_turn()

    def create_topic(self, name: str, partitions: int = 1) -> bytes:
        """Create a topic; returns its id."""
        from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

        response = self.client().ask(
            CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)]),
            7,
            CreateTopicsResponse,
        )
        assert response.topics[0].error_code == 0, response
        return response.topics[0].topic_id

    def close(self) -> None:
        for client in self.clients:
            client.connection.close()
        self.broker.log_dirs.close()


class Client:
    """One connection that sends requests and receives responses."""

    def __init__(
        self,
        memory: Any,
        *,
        client_id: str | None = "test",
        max_frame_bytes: int = 100 * 1024 * 1024,
        local: tuple[str, int] | None = None,
        buffers: FrameBuffers | None = None,
    ) -> None:
        """`memory` is an `InMemory`, or has its `broker`, `clock`, `kind`, `listener` and `address`."""
        self.memory = memory
        self.client_id = client_id
        self.buffers = buffers or FrameBuffers()
        self.outputs = 0
        self.connection = Connection(
            Dispatcher(memory.broker, memory.kind).dispatch,
            listener=memory.listener,
            peer=("10.0.0.1", 5000),
            local=local or memory.address,
            max_frame_bytes=max_frame_bytes,
            buffers=self.buffers,
            on_output=self._on_output,
            clock=lambda: memory.clock.now,
            on_refused=self._on_refused,
            count_errors=None if memory.broker.meter is None else memory.broker.meter.count_errors,
        )
        self.refused = ""
        """Why the connection is to be closed, if that was found outside of `feed`."""
        self.sent: list[tuple[int, int, int]] = []  # API key, version, correlation id
        self.inbox = bytearray()

    def _on_output(self, _: Connection) -> None:
        self.outputs += 1

    def _on_refused(self, _: Connection, error: ProtocolError) -> None:
        self.refused = str(error)

    def frame(self, request: Message, version: int) -> bytes:
        """The bytes of a request, whose response is expected in order."""
        correlation_id = len(self.sent) + 1
        self.sent.append((request.api_key, version, correlation_id))
        return b"".join(
            chunk_bytes(chunk) for chunk in encode_request(request, version, correlation_id, self.client_id)
        )

    def feed(self, data: bytes) -> None:
        """Pass bytes to the connection, and end the turn."""
        self.connection.receive(memoryview(bytearray(data)), self.memory.clock.now)
        self.memory.broker.loop.end_turn()

    def send(self, request: Message, version: int) -> None:
        self.feed(self.frame(request, version))

    def collect(self) -> None:
        """Take the connection's output, as the transport does."""
        connection = self.connection
        while connection.out:
            while connection.out:
                chunk = connection.out.popleft()
                connection.out_bytes -= len(chunk)
                self.inbox += chunk_bytes(chunk)
            connection.resume(self.memory.clock.now)
            self.memory.broker.loop.end_turn()

    def answers(self) -> list[Message]:
        """All complete responses, decoded; checks their correlation ids."""
        self.collect()
        responses = []
        while len(self.inbox) >= 4:
            (size,) = SIZE.unpack_from(self.inbox)
            if len(self.inbox) < 4 + size:
                break
            frame = bytes(self.inbox[4 : 4 + size])
            del self.inbox[: 4 + size]
            api_key, version, correlation_id = self.sent.pop(0)
            header, position = parse_response_header(frame, api_key, version)
            assert header.correlation_id == correlation_id
            if api_key == 18:
                version = api_versions_response_version(frame[position:], version)
            responses.append(message_for(api_key)[1].decode(frame[position:], version))
        return responses

    def ask(self, request: Message, version: int, response_class: type[R]) -> R:
        """Send a request and return its response, which must not be delayed unless the request is large."""
        frame = self.frame(request, version)
        self.feed(frame)
        if len(frame) > LARGE_REQUEST_BYTES:
            self.memory.advance(0)
        (response,) = self.answers()
        assert isinstance(response, response_class)
        return cast("R", response)

    def touch(self, topic: str) -> None:
        """Request the metadata of a topic, which creates it."""
        self.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
        self.answers()


def batch(*values: bytes, timestamp: int = START_MS, **options: Any) -> bytes:
    """A record batch with these values."""
    builder = BatchBuilder(**options)
    for index, value in enumerate(values):
        builder.append(timestamp + index, None, value)
    return builder.build()
