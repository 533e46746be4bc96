"""Answers from a cassette, request by request: which fields are compared, and which may differ from run to run."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.kit.cassette.exchange import Exchange
from barnabas.kit.cassette.replay import MissingError, Replay
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.batches.records import build_batch
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.groups.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from barnabas.wire.messages.groups.offsets import OffsetCommitRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.wire.messages.security.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.wire.schema import Message
from tests.cassette.exchanges import exchange_of
from tests.support.requests import recorded

PRODUCE_V, FETCH_V, SYNC_V, JOIN_V, HEARTBEAT_V, LEAVE_V = 9, 12, 5, 9, 4, 5


def said(request: Message, response: Message | None, version: int, took: float = 0.0) -> Exchange:
    """An exchange of a session."""
    body = None if response is None else response.encode(version)
    return Exchange(1, 0.0, ApiKey(request.api_key), version, "c", request.encode(version), body, version, took)


def ask(replay: Replay, request: Message, version: int) -> Any:
    """The answer as the client reads it."""
    kind = type(request)
    reply = replay.answer(ApiKey(request.api_key), version, kind.codec(version).parse(request.encode(version))[0])
    return None if reply is None else type(reply.message).decode(reply.message.encode(version), version)


def produce(*values: bytes, partition: int = 0) -> ProduceRequest:
    """A Produce of these records."""
    data = PartitionProduceData(index=partition, records=build_batch([(1, b"k", value) for value in values]))
    return ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=[data])])


def produced(base_offset: int, partition: int = 0, error: int = 0) -> ProduceResponse:
    """Its response."""
    partition_response = PartitionProduceResponse(index=partition, base_offset=base_offset, error_code=error)
    return ProduceResponse(responses=[TopicProduceResponse(name="orders", partition_responses=[partition_response])])


def fetch(offset: int, partition: int = 0, topic: str = "orders") -> FetchRequest:
    """A Fetch from an offset."""
    fetch_partition = FetchRequestFetchPartition(partition=partition, fetch_offset=offset)
    return FetchRequest(max_wait_ms=500, topics=[FetchRequestFetchTopic(topic=topic, partitions=[fetch_partition])])


def fetched(records: bytes, log_start_offset: int = 0) -> FetchResponse:
    """Its response."""
    partition_data = FetchResponsePartitionData(records=records, high_watermark=9, log_start_offset=log_start_offset)
    return FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=[partition_data])])


def records(*values: bytes, base_offset: int = 0) -> bytes:
    """A batch."""
    return build_batch([(1, b"k", value) for value in values], base_offset=base_offset)


def test_batches_may_be_cut_in_other_ways() -> None:
    replay = Replay([said(produce(b"a", b"b"), produced(4), PRODUCE_V), said(produce(b"c"), produced(6), PRODUCE_V)])
    first = ask(replay, produce(b"a"), PRODUCE_V)
    second = ask(replay, produce(b"b", b"c"), PRODUCE_V)
    offsets = [response.responses[0].partition_responses[0].base_offset for response in (first, second)]
    assert offsets == [4, 5]


def test_a_record_is_produced_once() -> None:
    replay = Replay([said(produce(b"a"), produced(0), PRODUCE_V), said(produce(b"b"), produced(1), PRODUCE_V)])
    ask(replay, produce(b"a"), PRODUCE_V)
    with pytest.raises(MissingError):
        ask(replay, produce(b"a"), PRODUCE_V)
    assert replay.missing == ["Produce to orders-0 of a record with key 'k', value 'a'; next comes key 'k', value 'b'"]
    with pytest.raises(MissingError, match=r"Produce to orders-1 .*; none comes any more"):
        ask(replay, produce(b"b", partition=1), PRODUCE_V)


def test_attempts_that_failed_are_not_expected_again() -> None:
    failed = produced(-1, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    replay = Replay([said(produce(b"a"), failed, PRODUCE_V), said(produce(b"a"), produced(7), PRODUCE_V)])
    assert ask(replay, produce(b"a"), PRODUCE_V).responses[0].partition_responses[0].base_offset == 7


def test_fetches_go_by_offsets() -> None:
    first, second = records(b"a", b"b"), records(b"c", base_offset=5)
    replay = Replay([said(fetch(0), fetched(first), FETCH_V), said(fetch(2), fetched(second), FETCH_V)])

    def given(offset: int) -> bytes:
        return bytes(ask(replay, fetch(offset), FETCH_V).responses[0].partitions[0].records)

    assert given(0) == given(1) == first
    assert given(2) == given(4) == given(5) == second, (
        "nothing lies between two batches that were read one after another"
    )
    assert given(6) == b""
    assert bytes(ask(replay, fetch(0, partition=1), FETCH_V).responses[0].partitions[0].records) == b""


def test_a_fetch_before_what_was_read() -> None:
    replay = Replay([said(fetch(5), fetched(records(b"c", base_offset=5)), FETCH_V)])
    with pytest.raises(MissingError, match="Fetch of orders-0 from offset 2; it was read from offset 5 on"):
        ask(replay, fetch(2), FETCH_V)
    compacted = Replay([said(fetch(0), fetched(records(b"c", base_offset=5), log_start_offset=0), FETCH_V)])
    assert bytes(ask(compacted, fetch(0), FETCH_V).responses[0].partitions[0].records)


def test_a_fetch_of_another_topic() -> None:
    replay = Replay([said(fetch(0), None, FETCH_V)])
    assert ask(replay, fetch(0), FETCH_V).responses[0].partitions[0].error_code == 0, "asked for, and not answered"
    with pytest.raises(MissingError, match="Fetch of other-0; topics that were fetched: orders"):
        ask(replay, fetch(0, topic="other"), FETCH_V)


def test_an_empty_fetch_waits_as_a_broker_does() -> None:
    replay = Replay([said(fetch(0), fetched(records(b"a")), FETCH_V)])
    waits = [replay.answer(ApiKey.FETCH, FETCH_V, fetch(offset)).wait_s for offset in (0, 1)]  # type: ignore[union-attr]
    assert waits == [0.0, 0.5]


def test_the_recorded_timing() -> None:
    session = [
        said(produce(b"a"), produced(0), PRODUCE_V, took=0.25),
        said(fetch(0), fetched(records(b"a")), FETCH_V, took=0.125),
        said(HeartbeatRequest(group_id="g"), HeartbeatResponse(), HEARTBEAT_V, took=2.0),
    ]
    for as_recorded, waits in ((True, [0.25, 0.125, 2.0]), (False, [0.0, 0.0, 0.0])):
        replay = Replay(session, as_recorded=as_recorded)
        requests = [(produce(b"a"), PRODUCE_V), (fetch(0), FETCH_V), (HeartbeatRequest(group_id="g"), HEARTBEAT_V)]
        answers = [replay.answer(ApiKey(one.api_key), version, one) for one, version in requests]
        assert [one.wait_s for one in answers if one is not None] == waits


def member() -> list[Exchange]:
    """A member that joins a classic group before it knows the topic, and is assigned nothing then."""
    join = JoinGroupRequest(group_id="g", member_id="m-1", protocol_type="consumer")
    sync = SyncGroupRequest(
        group_id="g", member_id="m-1", assignments=[SyncGroupRequestAssignment(member_id="m-1", assignment=b"nothing")]
    )
    return [
        said(join, JoinGroupResponse(member_id="m-1", leader="m-1", generation_id=1), JOIN_V),
        said(sync, SyncGroupResponse(assignment=b"nothing"), SYNC_V),
    ]


def test_a_leader_is_given_what_it_assigns_itself() -> None:
    """Whether it knows the topic when it joins depends on the time; a replay must not hang with an empty assignment."""
    replay = Replay(member())
    sync = SyncGroupRequest(
        group_id="g", member_id="m-1", assignments=[SyncGroupRequestAssignment(member_id="m-1", assignment=b"orders-0")]
    )
    assert ask(replay, sync, SYNC_V).assignment == b"orders-0"
    follower = SyncGroupRequest(group_id="g", member_id="m-1", assignments=[])
    assert ask(replay, follower, SYNC_V).assignment == b"orders-0"


def test_a_member_may_join_once_more() -> None:
    replay = Replay(member())
    join = JoinGroupRequest(group_id="g", member_id="m-1", protocol_type="consumer")
    assert [ask(replay, join, JOIN_V).generation_id for _ in range(3)] == [1, 1, 1]


def test_heartbeats_commits_and_goodbyes_come_by_the_clock_of_the_client() -> None:
    """The session was over before the first of them."""
    replay = Replay(member())
    for _ in range(2):
        assert ask(replay, HeartbeatRequest(group_id="g", member_id="m-1"), HEARTBEAT_V).error_code == 0
        assert ask(replay, OffsetCommitRequest(group_id="g", member_id="m-1"), 8).topics == []
    response = ask(replay, LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m-1")]), LEAVE_V)
    assert [(leaver.member_id, leaver.error_code) for leaver in response.members] == [("m-1", 0)]
    assert replay.missing == []
    for request, version in (
        (HeartbeatRequest(group_id="other"), HEARTBEAT_V),
        (LeaveGroupRequest(group_id="other"), LEAVE_V),
        (OffsetCommitRequest(group_id="other"), 8),
    ):
        with pytest.raises(MissingError, match="other"):
            ask(replay, request, version)
    assert replay.missing[-1] == "OffsetCommit of group other; groups of the session: g"


def test_an_error_of_a_heartbeat_is_told_once() -> None:
    heartbeat = HeartbeatRequest(group_id="g", member_id="m-1")
    rebalance = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    replay = Replay([*member(), said(heartbeat, rebalance, HEARTBEAT_V)])
    assert [ask(replay, heartbeat, HEARTBEAT_V).error_code for _ in range(2)] == [ErrorCode.REBALANCE_IN_PROGRESS, 0]


def test_heartbeats_of_a_consumer_group() -> None:
    join = ConsumerGroupHeartbeatRequest(group_id="g", member_id="mine", member_epoch=0)
    joined = ConsumerGroupHeartbeatResponse(member_id="mine", member_epoch=1, heartbeat_interval_ms=5000)
    replay = Replay([said(join, joined, 1)])
    later = ConsumerGroupHeartbeatRequest(group_id="g", member_id="another run", member_epoch=3)
    response = ask(replay, later, 1)
    assert (response.member_id, response.member_epoch, response.heartbeat_interval_ms) == ("another run", 3, 5000)
    with pytest.raises(MissingError, match="ConsumerGroupHeartbeat"):
        ask(replay, ConsumerGroupHeartbeatRequest(group_id="other", member_id="mine", member_epoch=3), 1)


def test_metadata_goes_by_topics() -> None:
    request = MetadataRequest(topics=[])
    replay = Replay([said(request, MetadataResponse(), 9)])
    assert ask(replay, MetadataRequest(topics=[], allow_auto_topic_creation=False), 9).topics == []
    with pytest.raises(MissingError, match=r"Metadata v9 .*other") as missing:
        ask(replay, MetadataRequest(topics=[MetadataRequestTopic(name="other")]), 9)
    refusal: Any = missing.value.refusal
    assert [(topic.name, topic.error_code) for topic in refusal.topics] == [
        ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    ]


@pytest.mark.parametrize("sent", [b"\0alice\0other", b"n,,\x01auth=Bearer token\x01\x01"])
def test_anybody_may_log_in(sent: bytes) -> None:
    replay = Replay([said(SaslAuthenticateRequest(auth_bytes=b""), SaslAuthenticateResponse(), 2)])
    assert ask(replay, SaslAuthenticateRequest(auth_bytes=sent), 2).error_code == 0


def test_scram_needs_the_password() -> None:
    with pytest.raises(MissingError, match="SaslAuthenticate by SCRAM; the broker must know the password"):
        ask(Replay([]), SaslAuthenticateRequest(auth_bytes=b"n,,n=alice,r=nonce"), 2)


def test_sessions_of_real_clients() -> None:
    """What each client has asked Kafka is answered again; only logging in by SCRAM is not."""
    sessions: dict[str, list[Exchange]] = {}
    for frames in recorded.exchanges():
        sessions.setdefault(frames.client, []).append(exchange_of(frames))
    for session in sessions.values():
        replay = Replay(session)
        for exchange in session:
            replay.answer(exchange.api, exchange.version, exchange.request_message())
        assert [sentence for sentence in replay.missing if "SCRAM" not in sentence] == []


def test_what_is_missing_is_bounded() -> None:
    replay = Replay([])
    for number in range(100):
        with pytest.raises(MissingError):
            ask(replay, produce(b"%d" % number), PRODUCE_V)
    assert len(replay.missing) == 20
