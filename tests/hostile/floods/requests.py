"""Requests of accepted clients: announced, unread, malformed, absurd, large when they are opened."""

from __future__ import annotations

import struct
from random import Random

from barnabas.broker.apis.registry import BROKER_APIS, served_versions
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from barnabas.wire.schema import Message
from tests.hostile.attacker import frame, frame_of
from tests.hostile.floods.run import Flood, Run
from tests.hostile.fuzz.absurd import Names, cases
from tests.hostile.secured import LISTENERS
from tests.support.logs import gzip_bombs as bombs

ELEMENTS = 2000
DESTRUCTIVE = {
    "DELETE_TOPICS",
    "DELETE_GROUPS",
    "OFFSET_DELETE",
    "DELETE_RECORDS",
    "CREATE_TOPICS",
    "CREATE_PARTITIONS",
}
"""They would take from the healthy client what it uses, or make thousands of partitions: `metadata` does that."""
BOTH = ("PLAINTEXT", "SASL_SSL")
VALUE = 900_000


def produce(run: Run, topic: str, batch: bytes) -> object:
    """The answer to a batch, None if the connection was closed."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return run.ask(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=data), 9)


def create(run: Run, topic: str, **configs: str) -> None:
    """Make a topic with one partition."""
    values = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topics = [CreatableTopic(name=topic, num_partitions=1, replication_factor=1, configs=values)]
    run.ask(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)


def announced(run: Run) -> None:
    """Large frames whose size and first bytes are sent."""
    for _ in run:
        peer = run.attacker()
        if peer is not None:
            run.try_send(peer.socket, struct.pack(">i", 100 << 20) + bytes(60_000))


def byte_by_byte(run: Run) -> None:
    """A request that arrives in single bytes on 50 connections."""
    sent = frame(MetadataRequest(topics=[]), 12)
    peers = [peer for peer in (run.attacker() for _ in range(50)) if peer is not None]
    for number in run:
        for peer in peers:
            run.try_send(peer.socket, sent[number % len(sent) :][:1])


def unread(run: Run) -> None:
    """Responses of 100 MB on each connection, which the client does not read."""
    create(run, "unread")
    produce(run, "unread", bombs.batch_of(bombs.TINY * (VALUE // len(bombs.TINY)), VALUE // len(bombs.TINY)))
    requested = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, session_epoch=-1,
        topics=[FetchRequestFetchTopic(topic="unread", partitions=[requested])],
    )  # fmt: skip
    sent = frame(request, 12) * 100
    for _ in run:
        peer = run.attacker()
        if peer is not None:
            run.try_send(peer.socket, sent)


def malformed(run: Run) -> None:
    """Of each API and version a body that is cut, or noise."""
    random = Random(1)
    apis = [(key, version) for key in BROKER_APIS for version in served_versions(key)]
    for number in run:
        peer = run.attacker()
        if peer is not None:
            key, version = apis[number % len(apis)]
            run.try_send(peer.socket, frame_of(key, version, random.randbytes(random.randrange(200))))


def absurd(run: Run) -> None:
    """Of each API and each of its arrays, a request with 2,000 elements."""
    names = Names(["missing"], [bytes(15) + b"\1"], ["g"], ["t"])
    apis = [key.name for key in BROKER_APIS if key.name not in DESTRUCTIVE]
    generated = iter(())
    for _ in run:
        case = next(generated, None)
        if case is None:
            generated = cases(names, ELEMENTS, apis)
            case = next(generated)
        peer = run.attacker()
        if peer is not None:
            run.try_send(peer.socket, frame(case.request, case.version))


def decompression_bombs(run: Run) -> None:
    """Batches that cost more to open than to send, to a compacted topic, for which all of it is read."""
    create(run, "bombs", cleanup_policy="compact")
    sent = [bombs.zstd_bomb(10_000_000), bombs.gzip_of_empty_members(50_000), bombs.honest_batch(100_000)]
    for number in run:
        produce(run, "bombs", sent[number % len(sent)])


def missing_topics(run: Run) -> None:
    """Metadata of a thousand topics that are not there, and may not be made."""
    for number in run:
        topics = [MetadataRequestTopic(name=f"missing-{number}-{index}") for index in range(1000)]
        run.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)


def pipelined(run: Run) -> None:
    """A hundred requests for everything at once, on ten connections."""
    everything: list[tuple[Message, int]] = [(MetadataRequest(topics=None), 12)] * 100
    for number in run:
        run.pipeline(everything, name=str(number % 10))


FLOODS = [
    Flood("frames of 100 MB announced", announced, LISTENERS, "grows with what arrives; queued.max.request.bytes", 50),
    Flood("requests byte by byte", byte_by_byte, LISTENERS, "connections.max.idle.ms", 100),
    Flood("responses that are not read", unread, LISTENERS, "2 MB of responses for a connection", 10),
    Flood("malformed frames of every API", malformed, BOTH, "closed", 100),
    Flood("absurd requests of every API", absurd, BOTH, "barnabas.request.max.elements", 30),
    Flood("decompression bombs", decompression_bombs, BOTH, "100 MiB of a batch, in steps", 4),
    Flood("metadata of missing topics", missing_topics, BOTH, "barnabas.request.max.elements", 10),
    Flood("pipelined requests", pipelined, BOTH, "2 MB of responses for a connection", 5),
]
