"""What a run asks of its broker around the clients: topics before they start, all there is when they are done.

It goes through a connection of its own, without delay and without faults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.net.connection import Connection
from barnabas.wire.frame import encode_request, parse_response_header
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import topics as tp
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes
from tests.simulation.network import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.wire.schema import Message
    from tests.simulation.world import World


def ask_directly(world: World, request: Message, version: int) -> Any:
    """One request and its answer, which comes at once or when the next sync is done."""
    node = world.node
    broker = node.broker
    assert broker is not None
    connection = _connect(world, broker)
    data = b"".join(chunk_bytes(chunk) for chunk in encode_request(request, version, 1, "setup"))
    node.turn(lambda _: connection.receive(memoryview(bytearray(data)), world.clock.now))
    world.run(10.0, lambda: bool(connection.out))
    answer = b"".join(chunk_bytes(chunk) for chunk in connection.out)[4:]
    connection.close()
    _, position = parse_response_header(answer, request.api_key, version)
    return message_for(request.api_key)[1].decode(answer[position:], version)


def _connect(world: World, broker: Broker) -> Connection:
    return Connection(
        Dispatcher(broker).dispatch,
        listener="PLAINTEXT",
        peer=("10.0.0.2", 5000),
        local=("127.0.0.1", 9092),
        max_frame_bytes=MAX_FRAME_BYTES,
        buffers=world.network.buffers,
        on_output=lambda _: None,
        now=world.clock.now,
    )


def create_topic(world: World, name: str, partitions: int) -> bytes:
    """Make a topic; its id."""
    asked = tp.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    answer = ask_directly(world, tp.CreateTopicsRequest(topics=[asked]), 7)
    assert answer.topics[0].error_code == 0, answer
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def direct_fetch(world: World, topic: str, partition: int, position: int) -> f.FetchResponsePartitionData:
    """What a read_committed reader gets from a position on."""
    asked = f.FetchRequestFetchPartition(partition=partition, fetch_offset=position, partition_max_bytes=1 << 20)
    request = f.FetchRequest(
        isolation_level=1,
        session_epoch=-1,
        topics=[f.FetchRequestFetchTopic(topic=topic, partitions=[asked])],
    )
    answer = ask_directly(world, request, 12)
    found: f.FetchResponsePartitionData = answer.responses[0].partitions[0]
    assert found.error_code == 0, found
    return found
