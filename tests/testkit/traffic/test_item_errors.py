"""An error of a rule is in the response of any API, where Kafka puts it, and what failed was not done."""

from __future__ import annotations

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.apis.registry import BROKER_APIS, Route, served_versions
from barnabas.kit.traffic.faults.item_errors import ItemErrors
from barnabas.kit.traffic.faults.rules import Condition
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.topics import DeleteTopicsRequest, ElectLeadersRequest
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.names import places
from tests.support.cases import for_each

CODE = ErrorCode.NOT_COORDINATOR


class _Image:
    """One topic, whose partition 0 is led by its preferred leader; 1 is led by another, and 2 has no leader."""

    topics = {  # noqa: RUF012 - it is never changed
        "a": SimpleNamespace(
            name="a", partitions=dict(enumerate(SimpleNamespace(replicas=(1, 2), leader=one) for one in (1, 2, -1)))
        ),
        "b": SimpleNamespace(name="b", partitions={0: SimpleNamespace(replicas=(2, 1), leader=2)}),
    }

    def topic_by_id(self, topic_id: bytes) -> None:
        """There is no topic."""


def _errors(key: ApiKey, version: int, condition: Condition) -> ItemErrors:
    context: Any = SimpleNamespace(broker=SimpleNamespace(image=_Image()))
    return ItemErrors(Route(key, version), context, condition, CODE)


def _answered(coroutine: Coroutine[Any, None, Any]) -> Any:
    """The value of a coroutine that does not wait."""
    with pytest.raises(StopIteration) as end:
        coroutine.send(None)
    return end.value.value


def _handled(ctx: object, request: object) -> None:
    pytest.fail("it was handled")


def _found(response: Any) -> dict[tuple[str | None, int | None], int]:
    return {
        (place.topic, place.partition): getattr(place.struct, place.error)
        for place in places(response, _Image())  # type: ignore[arg-type]
        if place.error is not None
    }


@for_each("key", BROKER_APIS, ids=lambda key: key.name)
def test_every_api_whose_response_has_an_error_code_can_fail(key: ApiKey) -> None:
    first, last = served_versions(key)
    for version in range(first, last + 1):
        route = Route(key, version)
        errors = _errors(key, version, Condition(api=key))
        if not errors._is_whole():
            continue
        response = _answered(errors.instead_of(_handled, None))
        decoded, _ = route.response_codec.parse(b"".join(map(bytes, route.response_codec.build(response))), 0)  # type: ignore[arg-type]
        assert decoded.error_code == CODE


def test_items_that_fail_are_not_committed() -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in range(3)]
    topics = [OffsetCommitRequestTopic(name=name, partitions=list(partitions)) for name in ("a", "b")]
    handled: list[Any] = []

    def handler(ctx: object, request: Any) -> Any:
        handled.append(request)
        fault = _errors(ApiKey.OFFSET_COMMIT, 8, Condition())
        fault._code = ErrorCode.NONE
        return fault._without_failed(handler, request)

    request = OffsetCommitRequest(group_id="g", topics=topics)
    errors = _errors(ApiKey.OFFSET_COMMIT, 8, Condition(topic="a", partition=1))
    response = _answered(errors.instead_of(handler, request))
    remaining = [(topic.name, [part.partition_index for part in topic.partitions]) for topic in handled[0].topics]
    assert remaining == [("a", [0, 2]), ("b", [0, 1, 2])]
    expected = {(name, index): 0 for name in ("a", "b") for index in range(3)} | {("a", 1): CODE}
    assert _found(response) == expected
    assert [topic.name for topic in response.topics] == ["a", "b"]
    assert [len(topic.partitions) for topic in request.topics] == [3, 3]


def test_topics_that_are_named_by_a_text() -> None:
    errors = _errors(ApiKey.DELETE_TOPICS, 5, Condition(topic="a"))
    allowed, failed = errors._divided(DeleteTopicsRequest(topic_names=["a", "b"]))
    assert (allowed.topic_names, failed.topic_names) == (["b"], ["a"])


def test_partitions_of_a_transaction() -> None:
    topics = [AddPartitionsToTxnTopic(name="a", partitions=[0, 1])]
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(transactional_id="t", producer_id=1, producer_epoch=0, topics=topics)
        ]
    )
    allowed, failed = _errors(ApiKey.ADD_PARTITIONS_TO_TXN, 5, Condition(topic="a", partition=1))._divided(request)
    assert allowed.transactions[0].topics[0].partitions == [0]
    assert failed.transactions[0].topics[0].partitions == [1]
    old = AddPartitionsToTxnRequest(v3_and_below_topics=topics)
    response = _answered(_errors(ApiKey.ADD_PARTITIONS_TO_TXN, 3, Condition(topic="a")).instead_of(_handled, old))
    assert {key: code for key, code in _found(response).items() if key[0]} == {("a", 0): CODE, ("a", 1): CODE}


def test_elections_of_all_partitions_fail_where_there_would_be_one() -> None:
    """Version 0 has no error of the whole response; Kafka lists all topics, and what needs no election is left out."""
    request = ElectLeadersRequest(topic_partitions=None)
    response = _answered(_errors(ApiKey.ELECT_LEADERS, 0, Condition()).instead_of(_handled, request))
    results = [
        (result.topic, [(part.partition_id, part.error_code) for part in result.partition_result])
        for result in response.replica_election_results
    ]
    assert results == [("a", [(1, CODE), (2, CODE)]), ("b", [])]
    later = _answered(_errors(ApiKey.ELECT_LEADERS, 2, Condition()).instead_of(_handled, request))
    assert (later.error_code, later.replica_election_results) == (CODE, [])
