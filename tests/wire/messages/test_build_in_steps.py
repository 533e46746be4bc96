"""A message that is built in steps has the same bytes as one that is built at once."""

from __future__ import annotations

from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.requests.recorded import vectors
from tests.support.steps import counted


def _built(message: Message, version: int) -> tuple[bytes, int]:
    """The bytes, and the number of steps."""
    chunks, steps = counted(type(message).codec(version).build_in_steps(message))
    return b"".join(map(chunk_bytes, chunks)), steps


def test_every_message_has_the_same_bytes() -> None:
    for vector in vectors():
        message = vector.message_class.decode(vector.data, vector.version)
        assert _built(message, vector.version)[0] == message.encode(vector.version)


def _partitions(count: int = 100) -> list[MetadataResponsePartition]:
    return [MetadataResponsePartition(partition_index=index) for index in range(count)]


def test_there_is_a_step_for_each_struct() -> None:
    topics = [MetadataResponseTopic(name="t", partitions=_partitions()) for _ in range(20)]
    message = MetadataResponse(topics=topics)
    data, steps = _built(message, 12)
    assert data == message.encode(12)
    assert steps >= 20 * 101


def test_a_list_that_structs_share_is_encoded_once() -> None:
    first, second = _partitions(), _partitions(7)
    topics = [
        MetadataResponseTopic(name="t", partitions=items) for items in (first, first, second, second, [], [], first)
    ]
    message = MetadataResponse(topics=topics)
    data, steps = _built(message, 12)
    assert data == message.encode(12)
    assert 100 + 7 + 100 <= steps <= 100 + 7 + 100 + 7 + 10
