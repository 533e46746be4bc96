"""A large request is decoded, handled and answered between the turns: others are served before it is answered."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis import registry
from barnabas.broker.apis.dispatcher import LARGE_REQUEST_BYTES
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.groups.classic_groups import DescribeGroupsRequest
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.security.acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.varint import encode_unsigned_varint
from tests.support.memory.broker import MemoryBroker

LATEST = -1
MANY = 2000


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path)
    memory.create_topic("t")
    yield memory
    memory.close()


def offsets(count: int) -> ListOffsetsRequest:
    """A request for the partition that exists, and for others that do not."""
    partitions = [ListOffsetsPartition(partition_index=index, timestamp=LATEST) for index in range(count)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=partitions)])


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
    assert [partition.partition_index for partition in large.topics[0].partitions] == list(range(MANY))
    assert large.topics[0].partitions[0] == small.topics[0].partitions[0]


def test_a_small_one_is_answered_in_its_turn(memory: MemoryBroker) -> None:
    client = memory.client()
    assert len(client.frame(offsets(10), 9)) < LARGE_REQUEST_BYTES
    client.sent.clear()
    client.send(offsets(10), 9)
    assert len(client.answers()) == 1


def test_one_whose_error_is_as_long_as_the_request_is_answered_with_it(memory: MemoryBroker) -> None:
    topics = [CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1) for number in range(12_000)]
    client, other = memory.client(), memory.client()
    client.send(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
    other.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, CreateTopicsResponse)
    assert [topic.name for topic in response.topics] == [topic.name for topic in topics]
    assert {topic.error_code for topic in response.topics} == {ErrorCode.POLICY_VIOLATION}


def test_a_bug_of_its_handler_is_answered_and_logged(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> object:
        raise RuntimeError("a bug")

    route = registry.ROUTES[registry.BROKER].find(ApiKey.CREATE_TOPICS, 7)
    monkeypatch.setattr(route, "handler", broken)
    request = CreateTopicsRequest(topics=[CreatableTopic(name=f"t{number}") for number in range(MANY)])
    response = memory.client().ask(request, 7, CreateTopicsResponse)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(response.topics) == MANY
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "CREATE_TOPICS v7 from 10.0.0.1:5000 has failed"
    ]


def test_one_that_is_truncated_closes_its_connection(memory: MemoryBroker) -> None:
    client = memory.client()
    body = client.frame(DescribeGroupsRequest(groups=["a group"] * MANY), 5)[4:-9]
    client.feed(len(body).to_bytes(4, "big") + body)
    assert not client.connection.is_closing
    memory.advance(0)
    assert client.refused == "DescribeGroupsRequest v5: the message is truncated"
    assert client.connection.is_closing


def test_one_that_has_only_a_client_id_is_refused(memory: MemoryBroker) -> None:
    client = memory.client(client_id="x" * LARGE_REQUEST_BYTES)
    body = client.frame(offsets(MANY), 9)[4 : 14 + LARGE_REQUEST_BYTES]
    with pytest.raises(ProtocolError, match="a request shorter than its header"):
        client.feed(len(body).to_bytes(4, "big") + body)


def test_many_tagged_fields_in_a_header_are_read_between_the_turns(memory: MemoryBroker) -> None:
    client = memory.client()
    frame = client.frame(offsets(1), 9)
    tags = b"".join(encode_unsigned_varint(tag) + b"\0" for tag in range(MANY * 2))
    body = frame[4:18] + encode_unsigned_varint(MANY * 2) + tags + frame[19:]
    client.feed(len(body).to_bytes(4, "big") + body)
    assert client.answers() == []
    memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, ListOffsetsResponse)


def test_a_long_one_with_few_elements_is_answered_in_its_turn(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(DescribeGroupsRequest(groups=["g" * 2 * LARGE_REQUEST_BYTES]), 5)
    assert len(client.answers()) == 1


def test_one_with_too_many_elements_closes_its_connection(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path, {"barnabas.request.max.elements": "100000"})
    client = memory.client()
    client.send(DescribeGroupsRequest(groups=["g"] * 100_001), 5)
    memory.advance(0)
    assert client.refused == (
        "DESCRIBE_GROUPS v5 of the client 'test' has 100001 groups and 0 other elements: 100000 are allowed "
        "(barnabas.request.max.elements)"
    )
    memory.close()


def test_one_that_does_not_fit_into_memory_closes_its_connection(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> object:
        raise MemoryError

    codec = registry.ROUTES[registry.BROKER].find(ApiKey.LIST_OFFSETS, 9).request_codec
    monkeypatch.setattr(codec, "parse_in_steps", exhausted)
    client = memory.client()
    client.send(offsets(MANY), 9)
    memory.advance(0)
    assert client.refused.startswith("LIST_OFFSETS v9 of the client 'test', ")
    assert client.refused.endswith(" bytes, does not fit into memory")


def test_one_that_breaks_the_protocol_closes_its_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
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
    assert client.refused
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []  # the reactor logs it
    memory.close()


def test_one_whose_client_has_left_is_not_handled(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(offsets(MANY), 9)
    client.connection.close()
    memory.advance(0)
    assert memory.broker.loop.is_idle
    assert client.answers() == []
