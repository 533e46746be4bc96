"""A message that is built in steps has the same bytes as one that is built at once."""

from __future__ import annotations

from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.wire.recorded import vectors


def _built(message: Message, version: int) -> tuple[bytes, int]:
    """The bytes, and the number of steps."""
    building = type(message).codec(version).build_in_steps(message)
    steps = 0
    while True:
        try:
            next(building)
        except StopIteration as end:
            return b"".join(map(chunk_bytes, end.value)), steps
        steps += 1


def test_every_message_has_the_same_bytes() -> None:
    for one in vectors():
        message = one.message_class.decode(one.data, one.version)
        assert _built(message, one.version)[0] == message.encode(one.version)


def test_there_is_a_step_for_each_struct() -> None:
    partitions = [MetadataResponsePartition(partition_index=index) for index in range(100)]
    message = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)] * 20)
    data, steps = _built(message, 12)
    assert data == message.encode(12)
    assert steps >= 20 * 101
