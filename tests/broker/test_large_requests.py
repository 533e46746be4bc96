"""A large request is handled between the turns: its turn decodes it, and others are served before it is answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.dispatcher import LARGE_REQUEST_BYTES
from barnabas.wire.messages.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.memory_broker import MemoryBroker

LATEST = -1
MANY = 2000


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path)
    memory.create_topic("t")
    yield memory
    memory.close()


def offsets(count: int) -> ListOffsetsRequest:
    """A request for the partition that is there, and for those that are not."""
    wanted = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(count)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=wanted)])


def test_others_are_served_before_it_and_its_connection_waits(memory: MemoryBroker) -> None:
    client, other = memory.client(), memory.client()
    client.send(offsets(MANY), 9)
    client.send(offsets(1), 9)
    assert client.answers() == []
    other.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
    assert client.answers() == []
    memory.advance(0)
    large, small = client.answers()
    assert isinstance(large, ListOffsetsResponse)
    assert isinstance(small, ListOffsetsResponse)
    assert [answer.partition_index for answer in large.topics[0].partitions] == list(range(MANY))
    assert large.topics[0].partitions[0] == small.topics[0].partitions[0]


def test_a_small_one_is_answered_in_its_turn(memory: MemoryBroker) -> None:
    client = memory.client()
    assert len(client.frame(offsets(10), 9)) < LARGE_REQUEST_BYTES
    client.sent.clear()
    client.send(offsets(10), 9)
    assert len(client.answers()) == 1


def test_one_that_breaks_the_protocol_closes_its_connection_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = MemoryBroker(tmp_path, {"authorizer.class.name": "barnabas", "super.users": "User:ANONYMOUS"})
    unknown = AclCreation(
        resource_type=0, resource_name="n", resource_pattern_type=3, principal="User:u", host="*", operation=0,
        permission_type=3,
    )  # fmt: skip
    client = memory.client()
    client.send(CreateAclsRequest(creations=[unknown] * MANY), 3)
    assert not client.connection.is_closing
    memory.advance(0)
    assert client.connection.is_closing
    assert client.answers() == []
    errors = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(errors) == 1
    assert errors[0].exc_info is None
    memory.close()


def test_one_whose_client_has_left_is_not_handled(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(offsets(MANY), 9)
    client.connection.close()
    memory.advance(0)
    assert memory.broker.loop.is_idle
    assert client.answers() == []
