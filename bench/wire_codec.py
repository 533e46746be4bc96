"""CPU microseconds of the message codecs: parse and build, compiled and (with --interpreted) by construct.

    python -m bench.wire_codec [--interpreted]

Prints one line per case: the best of several runs.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.wire.schema import Message


def _produce(size: int) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=bytes(size))
    return ProduceRequest(
        acks=1, timeout_ms=30000, topic_data=[TopicProduceData(name="bench-topic", partition_data=[data])]
    )


def _produce_response() -> ProduceResponse:
    data = PartitionProduceResponse(index=0, base_offset=123456, log_start_offset=0)
    return ProduceResponse(responses=[TopicProduceResponse(name="bench-topic", partition_responses=[data])])


def _fetch(partitions: int) -> FetchRequest:
    topics = [
        FetchRequestFetchPartition(partition=index, fetch_offset=1000 * index, partition_max_bytes=2**20)
        for index in range(partitions)
    ]
    topic = FetchRequestFetchTopic(topic="bench-topic", partitions=topics)
    return FetchRequest(max_wait_ms=500, min_bytes=1, topics=[topic])


def _fetch_response(partitions: int) -> FetchResponse:
    data = [
        FetchResponsePartitionData(
            partition_index=index, high_watermark=99, aborted_transactions=None, records=b"x" * 99
        )
        for index in range(partitions)
    ]
    return FetchResponse(responses=[FetchableTopicResponse(topic="bench-topic", partitions=data)])


def _metadata(topics: int, partitions: int) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host=f"broker-{node}", port=9092) for node in range(3)]
    parts = [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, leader_epoch=3, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for index in range(partitions)
    ]
    named = [MetadataResponseTopic(name=f"bench-topic-{index}", partitions=parts) for index in range(topics)]
    return MetadataResponse(brokers=brokers, cluster_id="abcdefghijklmnopqrstuv", controller_id=1, topics=named)


def _join_group() -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name=name, metadata=bytes(40)) for name in ("range", "cooperative-sticky")]
    return JoinGroupRequest(
        group_id="bench-group", session_timeout_ms=45000, member_id="m-1", protocol_type="consumer", protocols=protocols
    )


CASES: list[tuple[str, Message, int]] = [
    ("Produce v9, 1 x 1 KB", _produce(1024), 9),
    ("Produce v9, 1 x 1 MB", _produce(2**20), 9),
    ("Produce response v9", _produce_response(), 9),
    ("Fetch v12, 6 partitions", _fetch(6), 12),
    ("Fetch response v12, 6 partitions", _fetch_response(6), 12),
    ("Metadata response v12, 6 x 6", _metadata(6, 6), 12),
    ("JoinGroup v7", _join_group(), 7),
]


def best_us(call: Callable[[], object]) -> float:
    """CPU microseconds of one call: the best of seven rounds of about 20 ms."""
    started = time.process_time()
    rounds = 0
    while time.process_time() - started < 0.02:
        call()
        rounds += 1
    results = []
    for _ in range(7):
        started = time.process_time()
        for _ in range(rounds):
            call()
        results.append((time.process_time() - started) / rounds * 1e6)
    return min(results)


def main() -> None:
    """Print the table."""
    interpreted = "--interpreted" in sys.argv
    print(f"{'':36}{'parse':>10}{'build':>10}" + (f"{'at().parse':>12}{'at().build':>12}" if interpreted else ""))
    for title, message, version in CASES:
        codec = type(message).codec(version)
        frame = memoryview(message.encode(version))
        cells = [best_us(lambda c=codec, f=frame: c.parse(f)), best_us(lambda c=codec, m=message: c.build(m))]
        if interpreted:
            plain = type(message).at(version)
            cells.append(best_us(lambda p=plain, f=frame: p.parse(f)))
            cells.append(best_us(lambda p=plain, m=message: p.build(m)))
        print(f"{title:36}" + "".join(f"{cell:10.2f}" if n < 2 else f"{cell:12.1f}" for n, cell in enumerate(cells)))


if __name__ == "__main__":
    main()
