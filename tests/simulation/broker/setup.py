"""Requests of the run itself: topics are created before the clients start, and read when they are done.

They use a connection of their own, without delay and without faults.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import topics as tp
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes
from tests.support.requests.fetch import committed_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.wire.schema import Message
    from tests.simulation.broker.world import World
    from tests.support.requests.fetch import Records


def ask_directly(world: World, request: Message, version: int) -> Any:
    """Send one request and return the response."""
    node = world.node
    connection = world.network.server(lambda _: None, peer="10.0.0.2")
    data = b"".join(chunk_bytes(chunk) for chunk in encode_request(request, version, 1, "setup"))
    node.turn_with(lambda: connection.receive(memoryview(bytearray(data)), world.clock.now))
    world.run(10.0, lambda: bool(connection.out))
    response = b"".join(chunk_bytes(chunk) for chunk in connection.out)[4:]
    connection.close()
    _, position = parse_response_header(response, request.api_key, version)
    return message_for(request.api_key)[1].decode(response[position:], version)


def create_topic(world: World, name: str, partitions: int) -> bytes:
    """Create a topic; its id."""
    requested = tp.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = ask_directly(world, tp.CreateTopicsRequest(topics=[requested]), 7)
    assert response.topics[0].error_code == 0, response
    topic_id: bytes = response.topics[0].topic_id
    return topic_id


def visible_values(world: World, topic: str, partitions: int, check: Callable[[int, Records], None]) -> Counter[bytes]:
    """All values of a topic under read_committed; `check` gets partition and records of each fetch."""
    values: Counter[bytes] = Counter()
    for partition in range(partitions):
        position = 0
        while True:
            next_position, records = committed_records(position, _fetch(world, topic, partition, position))
            check(partition, records)
            values.update(value for _, value in records)
            if next_position == position:
                break
            position = next_position
    return values


def _fetch(world: World, topic: str, partition: int, position: int) -> f.FetchResponsePartitionData:
    requested = f.FetchRequestFetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=1 << 20)
    request = f.FetchRequest(
        isolation_level=1,
        session_epoch=-1,
        topics=[f.FetchRequestFetchTopic(topic=topic, partitions=[requested])],
    )
    response = ask_directly(world, request, 12)
    partition_data: f.FetchResponsePartitionData = response.responses[0].partitions[0]
    assert partition_data.error_code == 0, partition_data
    return partition_data
