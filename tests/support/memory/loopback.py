"""A reactor on loopback sockets in this process, and peers that speak to it byte by byte."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.event_loop.disk_threads import DiskThreads
from barnabas.broker.net.acceptor import Listener, bind
from barnabas.broker.net.limits import Limits
from barnabas.broker.net.reactor import Reactor
from barnabas.broker.start.builder import open_broker
from barnabas.broker.world import World
from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.waiting import within

ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")


class Loopback:
    """A reactor with one listener, and its asynchronous clients."""

    def __init__(
        self,
        data_dir: Path,
        limits: Limits | None = None,
        *,
        sets: Mapping[str, str] | None = None,
        flushes: DiskThreads | None = None,
    ) -> None:
        config = load({"listeners": "PLAINTEXT://127.0.0.1:0", **(sets or {})}, {}, None, "dev")
        self.flushes = flushes or DiskThreads()
        self.broker = open_broker(config, [str(data_dir)], World(disk=self.flushes))
        listening = bind("127.0.0.1", 0, 50)
        self.address = listening.getsockname()
        self.reactor = Reactor(self.broker.loop, limits or Limits(), Dispatcher(self.broker).dispatch)
        if self.broker.meter is not None:
            self.reactor.meter, self.broker.meter.reactor = self.broker.meter, self.reactor
        self.reactor.watch(self.flushes.fileno(), self.flushes.collect)
        self.reactor.listen(Listener("PLAINTEXT", listening))
        self.broker.controller.register_broker([Endpoint("PLAINTEXT", *self.address)])
        self.peers: list[Peer] = []

    async def dial(self) -> Peer:
        stream = await trio.open_tcp_stream(*self.address)
        self.peers.append(Peer(stream))
        return self.peers[-1]


class Peer:
    """The client's side of a connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, *requests: tuple[Message, int]) -> None:
        frames = [
            b"".join(chunk_bytes(chunk) for chunk in encode_request(request, version, 1, "test"))
            for request, version in requests
        ]
        await self.stream.send_all(b"".join(frames))

    async def receive(self, response_class: type[Message], version: int) -> Message:
        frame = await self._exactly(struct.unpack(">i", await self._exactly(4))[0])
        _, position = parse_response_header(frame, response_class.api_key, version)
        return response_class.decode(frame[position:], version)

    async def ask(self, request: Message, version: int) -> Message:
        await self.send((request, version))
        return await self.receive(message_for(request.api_key)[1], version)

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = await self.stream.receive_some(1 << 20)
            if not data:
                raise EOFError
            self._buffer += data
        data_read, self._buffer = self._buffer[:size], self._buffer[size:]
        return data_read

    async def is_closed(self) -> bool:
        """Wait until the broker closes the connection."""
        try:
            while await self.stream.receive_some(65536):
                pass
        except trio.BrokenResourceError:
            pass
        return True


@asynccontextmanager
async def serving(data_dir: Path, limits: Limits | None = None, **options: Any) -> AsyncIterator[Loopback]:
    loopback = Loopback(data_dir, limits, **options)
    try:
        with within("the end of the block"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(loopback.reactor.run)
                nursery.start_soon(loopback.broker.loop.timers.run)
                yield loopback
                nursery.cancel_scope.cancel()
    finally:
        for peer in loopback.peers:
            peer.stream.socket.close()
        loopback.broker.log_dirs.close()
        loopback.flushes.close()


def produce(topic: str, records: bytes) -> ProduceRequest:
    return ProduceRequest(
        acks=1,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])],
    )


def fetch(topic: str, offset: int, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchRequestFetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchRequestFetchTopic(topic=topic, partitions=[partition])],
    )


async def make_topic(peer: Peer, name: str) -> None:
    await peer.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
