"""Produce: sizes, codecs, producers, connections, and what acknowledgements wait for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from barnabas.wire.batches.compression import Codec
from barnabas.wire.messages.produce import (
    InitProducerIdRequest,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.costs.client import Client, check
from tests.costs.kind import Kind, Step, Steps, one_client
from tests.costs.kinds.batches import batch
from tests.costs.world import PLAIN, CountedWorld

VERSION = 11
"""The last version with names of topics before the second generation of transactions."""
WITH_IDS = 13
SIZES = {"1 record": 1, "16 KB": 150, "100 KB": 950}
CONNECTIONS = 50
CALL_S = 11e-6
"""How long a system call takes where time passes: a turn of 1 ms is over before all connections are served."""


def produce_request(topic: str, records: bytes, *, acks: int = -1, topic_id: bytes = bytes(16)) -> ProduceRequest:
    """One batch for partition 0."""
    data = TopicProduceData(
        name=topic, topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=records)]
    )
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data])


def produced(response: ProduceResponse) -> None:
    """Check the response for one partition."""
    check(response.responses[0].partition_responses[0].error_code, "Produce")


def produce_again(
    client: Client, topic: str, count: int, codec: Codec = Codec.NONE, configs: Mapping[str, str] | None = None
) -> Steps:
    """The same batch of `count` records again and again."""
    client.create_topic(topic, configs=configs)
    request = produce_request(topic, batch(count, codec=codec))
    while True:
        (response,) = yield one_client(client, request, VERSION)
        produced(response)


def _plain(world: CountedWorld, *, count: int, codec: Codec = Codec.NONE) -> Steps:
    return produce_again(world.client(), f"produce-{count}-{codec}", count, codec)


def _synced(world: CountedWorld) -> Steps:
    return produce_again(world.client(), "produce-synced", 1, configs={"flush.messages": "1"})


def _with_topic_id(world: CountedWorld) -> Steps:
    client = world.client()
    topic_id = client.create_topic("produce-by-id")
    request = produce_request("", batch(1), topic_id=topic_id)
    while True:
        (response,) = yield one_client(client, request, WITH_IDS)
        produced(response)


def _without_acks(world: CountedWorld) -> Steps:
    client = world.client()
    client.create_topic("produce-acks-0")
    request = produce_request("produce-acks-0", batch(1), acks=0)
    while True:
        yield Step([(client, request, VERSION)], reads=[])


def _idempotent(world: CountedWorld) -> Steps:
    client = world.client()
    client.create_topic("produce-idempotent")
    allocated = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    check(allocated.error_code, "InitProducerId")
    sequence = 0
    while True:
        records = batch(
            1, producer_id=allocated.producer_id, producer_epoch=allocated.producer_epoch, base_sequence=sequence
        )
        (response,) = yield one_client(client, produce_request("produce-idempotent", records), VERSION)
        produced(response)
        sequence += 1


def _in_pieces(world: CountedWorld) -> Steps:
    """A request that arrives in four pieces: partial frames are kept."""
    client = world.client()
    client.create_topic("produce-pieces")
    request = produce_request("produce-pieces", batch(SIZES["100 KB"]))
    while True:
        (response,) = yield Step([(client, request, VERSION)], pieces=4)
        produced(response)


def _many_connections(world: CountedWorld, *, topic: str) -> Steps:
    clients = [world.client() for _ in range(CONNECTIONS)]
    clients[0].create_topic(topic)
    request = produce_request(topic, batch(1))
    yield Step([], passes_deadlines_s=0.2, is_counted=False)
    while True:
        responses = yield Step([(client, request, VERSION) for client in clients])
        for response in responses:
            produced(response)


PRODUCE = (
    *(Kind(f"Produce {size}", PLAIN, partial(_plain, count=count)) for size, count in SIZES.items()),
    Kind("Produce 16 KB, gzip", PLAIN, partial(_plain, count=150, codec=Codec.GZIP)),
    Kind("Produce 16 KB, zstd", PLAIN, partial(_plain, count=150, codec=Codec.ZSTD)),
    Kind("Produce 1 record, topic id", PLAIN, _with_topic_id),
    Kind("Produce 1 record, acks=0", PLAIN, _without_acks),
    Kind("Produce 1 record, idempotent", PLAIN, _idempotent),
    Kind("Produce 1 record, synced", PLAIN, _synced),
    Kind("Produce 100 KB, in 4 pieces", PLAIN, _in_pieces),
    Kind(
        f"Produce 1 record, {CONNECTIONS} connections",
        PLAIN,
        partial(_many_connections, topic="produce-many"),
        requests=CONNECTIONS,
        repeats=8,
    ),
    Kind(
        f"Produce 1 record, {CONNECTIONS} connections, time passes",
        PLAIN,
        partial(_many_connections, topic="produce-many-slowly"),
        requests=CONNECTIONS,
        repeats=8,
        call_s=CALL_S,
    ),
)
