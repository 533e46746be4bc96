"""Requests to the active controller, what a broker itself asks of it, and what it forwards for clients."""

from __future__ import annotations

import pytest

from barnabas.broker.metadata.quorum_leader import QuorumLeader
from barnabas.broker.metadata.remote_channel import RemoteChannel
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    EnvelopeRequest,
    EnvelopeResponse,
)
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.broker.metadata.scripted_controller import started, topic_records
from tests.broker.scripted_nodes import Answers, ScriptedNode, Wire

# The channel


def ids_from(node: ScriptedNode, number: int) -> None:
    node.on(AllocateProducerIdsRequest, lambda request, _: AllocateProducerIdsResponse(producer_id_start=number))


def not_controller(node: ScriptedNode) -> None:
    refusal = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    node.on(AllocateProducerIdsRequest, lambda request, _: refusal)


def channel_to(wire: Wire, *nodes: ScriptedNode) -> tuple[RemoteChannel, QuorumLeader]:
    quorum = QuorumLeader([], {3000 + number: node.address for number, node in enumerate(nodes)})
    channel = RemoteChannel(wire.loop, wire.outgoing.connect, quorum, client_id="test", timeout_s=5.0, backoff_s=0.02)
    return channel, quorum


def test_a_request_waits_for_a_leader_and_is_sent_to_it(wire):
    node = wire.node()
    ids_from(node, 7)
    channel, quorum = channel_to(wire, node)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.settle()
    assert not node.requests
    quorum.learned(3000, 1)
    wire.until(lambda: answers.all)
    assert answers.all[0].producer_id_start == 7


def test_it_is_repeated_at_the_new_controller_until_one_answers(wire):
    old, new = wire.node(), wire.node()
    not_controller(old)
    ids_from(new, 9)
    channel, quorum = channel_to(wire, old, new)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.advance(0.3)
    assert len(old.requests) > 1
    assert not answers.all
    quorum.learned(3001, 2)
    wire.advance(1.2)
    assert answers.all[0].producer_id_start == 9


def test_a_request_in_flight_to_a_controller_that_leads_no_more_is_repeated_at_once(wire):
    old, new = wire.node(), wire.node()
    old.on(AllocateProducerIdsRequest, lambda request, _: None)
    ids_from(new, 9)
    channel, quorum = channel_to(wire, old, new)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.until(lambda: old.requests)
    quorum.learned(3001, 2)
    wire.advance(0.3)
    assert answers.codes == [None]


def test_it_fails_when_its_time_is_up(wire):
    node = wire.node()
    not_controller(node)
    channel, quorum = channel_to(wire, node)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers, timeout_s=1.0)
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.advance(1.1)
    assert answers.codes == [ErrorCode.REQUEST_TIMED_OUT]
    wire.advance(4)
    assert answers.codes == [ErrorCode.REQUEST_TIMED_OUT] * 2


def test_an_answer_that_cannot_be_decoded_is_not_repeated(wire):
    """Trap 7: a creation that was repeated would say that the topic exists."""
    node = wire.node()
    node.on(AllocateProducerIdsRequest, lambda request, _: b"\0\0\0\x06\0\0\0\x01\0\0")
    channel, quorum = channel_to(wire, node)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.advance(1)
    assert answers.codes == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert len(node.requests) == 1


def test_other_errors_are_the_callers(wire):
    node = wire.node()
    node.on(
        AllocateProducerIdsRequest,
        lambda request, _: AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
    )
    channel, quorum = channel_to(wire, node)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.advance(0.2)
    assert answers.all[0].error_code == ErrorCode.STALE_BROKER_EPOCH


def test_purposes_do_not_wait_for_each_other(wire):
    node = wire.node()
    ids_from(node, 1)
    node.on(EnvelopeRequest, lambda request, _: None)
    channel, quorum = channel_to(wire, node)
    quorum.learned(3000, 1)
    answers = Answers()
    channel.send(EnvelopeRequest(), answers)
    channel.send(AllocateProducerIdsRequest(), answers)
    wire.advance(0.5)
    assert len(answers.all) == 1


def test_a_closed_channel_fails_everything(wire):
    channel, _ = channel_to(wire)
    answers = Answers()
    channel.send(AllocateProducerIdsRequest(), answers)
    channel.close()
    channel.send(AllocateProducerIdsRequest(), answers)
    assert len(answers.all) == 1
    wire.settle()
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION] * 2


def test_an_older_epoch_says_nothing(wire):
    _, quorum = channel_to(wire)
    assert quorum.learned(3001, 5)
    assert not quorum.learned(3000, 4, [(3000, "127.0.0.1", 1)])
    assert (quorum.leader_id, quorum.epoch) == (3001, 5)
    quorum.failed()
    assert (quorum.leader_id, quorum.epoch) == (-1, 5)


# What the broker itself asks


def test_producer_ids_are_of_the_controllers_block_and_fetched_ahead(wire, tmp_path, controller):
    blocks = iter(range(5000, 9000, 1000))
    respond = lambda request, _: AllocateProducerIdsResponse(producer_id_start=next(blocks), producer_id_len=1000)  # noqa: E731
    controller.node.on(AllocateProducerIdsRequest, respond)
    member = started(wire, tmp_path, controller)
    ready = Answers()
    member.broker.producer_ids.when_available(ready)
    wire.advance(0.2)
    assert ready.all == [None]
    producer_ids = []
    for count in range(1500):
        producer_ids.append(member.broker.producer_ids.next())
        if count % 50 == 0:
            wire.settle(10)
    assert producer_ids == list(range(5000, 6500))
    request = next(
        received for received in controller.node.requests if isinstance(received, AllocateProducerIdsRequest)
    )
    assert (request.broker_id, request.broker_epoch) == (1, member.lifecycle.broker_epoch)


def test_a_topic_is_created_once_and_waited_for_until_it_is_here(wire, tmp_path, controller):
    requests: list[CreateTopicsRequest] = []

    def create(request: CreateTopicsRequest, _: int) -> CreateTopicsResponse:
        requests.append(request)
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])

    controller.node.on(CreateTopicsRequest, create)
    member = started(wire, tmp_path, controller, num_partitions="3")
    answers = Answers()
    member.broker.metadata.auto_create(["t"], answers)
    member.broker.metadata.auto_create(["t"], answers)
    wire.advance(0.2)
    assert len(requests) == 1
    assert requests[0].topics[0].num_partitions == 3
    assert not answers.all
    controller.quorum.write(*topic_records("t", 1))
    wire.advance(0.2)
    assert answers.all == [{}, {}]
    member.broker.metadata.auto_create(["t"], answers)
    assert answers.all == [{}, {}, {}]


def test_the_error_of_a_creation_reaches_who_waits(wire, tmp_path, controller):
    refusal = CreatableTopicResult(name="t", error_code=ErrorCode.POLICY_VIOLATION, error_message="no")
    controller.node.on(CreateTopicsRequest, lambda request, _: CreateTopicsResponse(topics=[refusal]))
    member = started(wire, tmp_path, controller)
    answers = Answers()
    member.broker.metadata.auto_create(["t"], answers)
    wire.advance(0.2)
    assert answers.all[0]["t"].code == ErrorCode.POLICY_VIOLATION


def test_a_topic_that_never_comes_is_given_up(wire, tmp_path, controller):
    exists = CreatableTopicResult(name="t", error_code=ErrorCode.TOPIC_ALREADY_EXISTS)
    controller.node.on(CreateTopicsRequest, lambda request, _: CreateTopicsResponse(topics=[exists]))
    member = started(wire, tmp_path, controller)
    answers = Answers()
    member.broker.metadata.auto_create(["t"], answers)
    wire.advance(31)
    assert answers.all[0]["t"].code == ErrorCode.REQUEST_TIMED_OUT


# Forwarding


def test_an_envelope_has_the_request_the_principal_and_the_address(wire, tmp_path, controller):
    from barnabas.broker.apis.forwarding import _unpacked
    from barnabas.wire.messages.headers import DefaultPrincipalData
    from barnabas.wire.principal import ANONYMOUS

    principal = ANONYMOUS.to_bytes()
    assert principal[:2] == b"\0\0"
    assert DefaultPrincipalData.decode(memoryview(principal)[2:], 0).name == "ANONYMOUS"
    request = CreateTopicsRequest()
    for code, expected in [
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
    ]:
        with pytest.raises(KafkaError) as refused:
            _unpacked(request, 7, EnvelopeResponse(error_code=code))
        assert refused.value.code == expected
    with pytest.raises(KafkaError) as refused:
        _unpacked(request, 7, EnvelopeResponse(response_data=b"\0\0"))
    assert refused.value.code == ErrorCode.UNKNOWN_SERVER_ERROR
