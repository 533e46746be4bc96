"""Limits of a request: its elements, and the memory that it may need."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis import registry
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.groups.classic_groups import DescribeGroupsRequest, DescribeGroupsResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.memory.broker import MemoryBroker


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path, {"barnabas.request.max.elements": "100"})
    yield memory
    memory.close()


def exhausted(*_: object) -> object:
    raise MemoryError


def _commit(topics: int, partitions: int) -> OffsetCommitRequest:
    each = [OffsetCommitRequestPartition(partition_index=index) for index in range(partitions)]
    names = [OffsetCommitRequestTopic(name=f"t{index}", partitions=each) for index in range(topics)]
    return OffsetCommitRequest(group_id="g", topics=names)


def test_a_request_with_the_allowed_number_of_elements_is_answered(memory: MemoryBroker) -> None:
    response = memory.client().ask(_commit(10, 9), 9, OffsetCommitResponse)
    assert sum([len(topic.partitions) for topic in response.topics]) == 90


def test_elements_of_nested_arrays_count(memory: MemoryBroker) -> None:
    client = memory.client(client_id="greedy")
    with pytest.raises(ProtocolError) as refused:
        client.send(_commit(10, 10), 9)
    assert str(refused.value) == (
        "OFFSET_COMMIT v9 of the client 'greedy' has 10 partitions and 100 other elements: 100 are allowed "
        "(barnabas.request.max.elements)"
    )


def test_a_long_request_with_few_elements_has_no_more_than_are_allowed(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(DescribeGroupsRequest(groups=["g" * 100] * 101), 5)
    memory.advance(0)
    assert client.refused.startswith("DESCRIBE_GROUPS v5 of the client 'test' has 101 groups and 0 other elements")


def test_each_request_has_its_own_budget(memory: MemoryBroker) -> None:
    client = memory.client()
    for _ in range(3):
        assert len(client.ask(DescribeGroupsRequest(groups=[""] * 80), 5, DescribeGroupsResponse).groups) > 0
        assert len(client.ask(_commit(60, 0), 9, OffsetCommitResponse).topics) == 60


def test_tagged_fields_of_header_and_body_count(memory: MemoryBroker) -> None:
    client = memory.client(client_id=None)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")] * 60, allow_auto_topic_creation=False)
    request.unknown_tagged_fields = tuple([(tag, b"") for tag in range(20)])
    frame = client.frame(request, 12)
    assert frame[14:15] == b"\0"  # the header has no tagged fields; now it has 20, then 21
    sized = [frame[4:14] + bytes([count]) + bytes([100, 0]) * count + frame[15:] for count in (20, 21)]
    client.feed(len(sized[0]).to_bytes(4, "big") + sized[0])
    (response,) = client.answers()
    assert isinstance(response, MetadataResponse)
    with pytest.raises(ProtocolError, match=r"METADATA v12 of the client None has 20 tagged fields and 81 other"):
        client.feed(len(sized[1]).to_bytes(4, "big") + sized[1])


def test_a_request_that_does_not_fit_into_memory_closes_its_connection_only(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = memory.client()
    with monkeypatch.context() as patch:
        patch.setattr(
            registry.ROUTES[registry.BROKER].find(ApiKey.OFFSET_COMMIT, 9).request_codec, "parse_within", exhausted
        )
        with pytest.raises(ProtocolError, match=r"OFFSET_COMMIT v9 of the client 'test', \d+ bytes, does not fit"):
            client.send(_commit(10, 9), 9)
        patch.setattr(
            registry.ROUTES[registry.BROKER].find(ApiKey.DESCRIBE_GROUPS, 5).request_codec, "parse", exhausted
        )
        with pytest.raises(ProtocolError, match=r"DESCRIBE_GROUPS v5 of the client 'test', \d+ bytes, does not fit"):
            memory.client().send(DescribeGroupsRequest(groups=["g"]), 5)
    memory.client().ask(_commit(10, 9), 9, OffsetCommitResponse)


def test_a_handler_without_memory_is_answered_and_logged_in_one_line(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    route = registry.ROUTES[registry.BROKER].find(ApiKey.OFFSET_COMMIT, 9)
    monkeypatch.setattr(route, "handler", exhausted)
    monkeypatch.setattr(route, "on_error", lambda _, error: OffsetCommitResponse(throttle_time_ms=int(error.code)))
    with caplog.at_level(logging.ERROR):
        response = memory.client().ask(_commit(1, 1), 9, OffsetCommitResponse)
    assert response.throttle_time_ms == -1
    assert [record.getMessage() for record in caplog.records] == [
        "OFFSET_COMMIT v9 from 10.0.0.1:5000 has failed: out of memory"
    ]
    assert caplog.records[0].exc_info is None
