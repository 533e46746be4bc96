"""Requests to other nodes: versions, order, timeouts, lost connections, invalid responses."""

from __future__ import annotations

import pytest

from barnabas.broker.net.client.inter_broker import InterBroker
from barnabas.broker.net.client.network_client import NetworkClient
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.cluster import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.scripted_nodes import Answers, ScriptedNode, Wire


@pytest.fixture
def node(wire: Wire) -> ScriptedNode:
    node = wire.node()
    node.on(
        AllocateProducerIdsRequest, lambda request, _: AllocateProducerIdsResponse(producer_id_start=request.broker_id)
    )
    return node


def client_of(wire: Wire, node: ScriptedNode, **options: int) -> NetworkClient:
    return NetworkClient(wire.loop, wire.outgoing.connect, lambda: node.address, client_id="test", **options)


def ask(client: NetworkClient, number: int, then: Answers, timeout_s: float = 10.0) -> None:
    client.send(AllocateProducerIdsRequest(broker_id=number), then, timeout_s=timeout_s)


def test_responses_come_in_the_order_of_the_requests_and_never_within_the_call(wire, node):
    client, answers = client_of(wire, node), Answers()
    for number in range(5):
        ask(client, number, answers)
    assert not answers.all
    wire.until(lambda: len(answers.all) == 5)
    assert [response.producer_id_start for response in answers.all] == [0, 1, 2, 3, 4]
    assert len(node.peers) == 1


def test_one_request_is_in_flight(wire, node):
    node.handlers[AllocateProducerIdsRequest] = lambda request, version: None
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers)
    wire.until(lambda: node.requests)
    ask(client, 2, answers)
    wire.settle()
    assert len(node.requests) == 1


def test_the_highest_common_version_is_used_unless_it_is_capped(wire, node):
    node.on(MetadataRequest, lambda request, version: MetadataResponse())
    node.versions[MetadataRequest.api_key] = (4, 9)
    client, answers = client_of(wire, node), Answers()
    client.send(MetadataRequest(), answers, timeout_s=5)
    client.send(MetadataRequest(), answers, timeout_s=5, max_version=7)
    client.send(MetadataRequest(), answers, timeout_s=5, max_version=3)
    wire.until(lambda: len(answers.all) == 3)
    assert node.received_versions == [9, 7]
    assert answers.codes == [None, None, ErrorCode.UNSUPPORTED_VERSION]


def test_a_request_that_the_node_does_not_know_fails_and_the_next_is_sent(wire, node):
    client, answers = client_of(wire, node), Answers()
    client.send(MetadataRequest(), answers, timeout_s=5)
    ask(client, 7, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [ErrorCode.UNSUPPORTED_VERSION, None]


def test_an_older_node_is_asked_for_its_versions_again(wire, node):
    requested: list[int] = []

    def versions(request, version):
        requested.append(version)
        keys = [ApiVersion(api_key=18, max_version=0), ApiVersion(api_key=AllocateProducerIdsRequest.api_key)]
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION if version else 0, api_keys=keys)

    node.on(ApiVersionsRequest, versions)
    client, answers = client_of(wire, node), Answers()
    ask(client, 3, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [None]
    assert requested[-1] == 0


def test_a_refused_connection_fails_what_waits_and_the_next_attempt_is_later(wire, node):
    node.close()
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers)
    ask(client, 2, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION] * 2
    ask(client, 3, answers)
    wire.settle()
    assert len(answers.all) == 2  # it waits for the pause between connections
    wire.advance(0.1)
    assert answers.codes[2:] == [ErrorCode.NETWORK_EXCEPTION]


def test_a_lost_connection_fails_the_request_in_flight_and_the_others_get_a_new_one(wire, node):
    first = True

    def answer(request, _):
        nonlocal first
        if first:
            first = False
            return None
        return AllocateProducerIdsResponse(producer_id_start=request.broker_id)

    node.on(AllocateProducerIdsRequest, answer)
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers)
    ask(client, 2, answers)
    wire.until(lambda: node.requests)
    node.disconnect()
    wire.until(lambda: answers.all)
    wire.advance(0.1)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION, None]


def test_a_request_times_out_with_its_connection_also_while_it_waits(wire, node):
    node.is_silent = True
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers, timeout_s=1.0)
    ask(client, 2, answers, timeout_s=2.0)
    wire.advance(1.5)
    assert answers.codes[:1] == [ErrorCode.REQUEST_TIMED_OUT]
    node.is_silent = False
    wire.advance(1.0)
    assert len(answers.all) == 2


def test_an_invalid_response_is_no_network_error(wire, node):
    """Trap 7: decode errors must never be retried as network errors."""
    node.on(AllocateProducerIdsRequest, lambda request, _: b"\0\0\0\x06\0\0\0\x01\0\0")
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_response_larger_than_the_limit_is_refused(wire, node):
    node.on(FetchRequest, lambda request, _: _records(b"x" * 100_000))
    client, answers = client_of(wire, node, max_frame_bytes=50_000), Answers()
    client.send(FetchRequest(), answers, timeout_s=5, max_version=12)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_large_records_are_received_whole_and_are_valid_in_the_callback(wire, node):
    content = bytes(range(256)) * 40_000
    node.on(FetchRequest, lambda request, _: _records(content))
    seen: list[bytes] = []
    client = client_of(wire, node)
    for _ in range(2):
        client.send(
            FetchRequest(),
            lambda response: seen.append(bytes(response.responses[0].partitions[0].records)),
            timeout_s=5,
            max_version=12,
        )
    wire.until(lambda: len(seen) == 2)
    assert seen == [content, content]


def _records(content: bytes) -> FetchResponse:
    partition = FetchResponsePartitionData(records=content)
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])


def test_another_address_of_a_node_makes_a_new_connection(wire, node):
    other = wire.node()
    other.handlers = node.handlers
    addresses = {1: node.address}
    brokers = InterBroker(wire.loop, wire.outgoing.connect, addresses.get, client_id="broker-0")
    answers = Answers()
    client = brokers.client(1, "fetch")
    assert brokers.client(1, "fetch") is client
    assert brokers.client(1, "markers") is not client
    ask(client, 1, answers)
    wire.until(lambda: answers.all)
    addresses[1] = other.address
    ask(client, 2, answers)
    wire.advance(0.1)
    wire.until(lambda: len(answers.all) == 2)
    assert (len(node.requests), len(other.requests)) == (1, 1)
    assert answers.codes == [None, None]


def test_an_unknown_address_is_a_network_error_and_a_closed_client_stays_closed(wire):
    brokers = InterBroker(wire.loop, wire.outgoing.connect, lambda node_id: None, client_id="broker-0")
    answers = Answers()
    ask(brokers.client(5, "x"), 1, answers)
    wire.until(lambda: answers.all)
    brokers.close()
    ask(brokers.client(5, "x"), 2, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION] * 2


def test_a_client_is_good_for_a_node_that_is_registered_again(wire, node):
    """R29: waiting requests fail while the node is not registered; the same client reaches it afterwards."""
    other, registered, answers = wire.node(), [node.address], Answers()
    other.on(AllocateProducerIdsRequest, lambda request, _: AllocateProducerIdsResponse(producer_id_start=9))
    node.handlers[AllocateProducerIdsRequest] = lambda request, version: None
    brokers = InterBroker(wire.loop, wire.outgoing.connect, lambda _: registered[0], client_id="broker-0")
    client = brokers.client(5, "x")
    ask(client, 1, answers)
    wire.until(lambda: node.requests)
    registered[0] = None
    brokers.registration_changed(5)
    ask(client, 2, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [ErrorCode.NETWORK_EXCEPTION] * 2
    registered[0] = other.address
    wire.now += 1
    brokers.registration_changed(5)
    ask(client, 3, answers)
    wire.until(lambda: len(answers.all) == 3)
    assert answers.codes[2] is None
    assert brokers.client(5, "x") is client


def test_names_are_looked_up_and_unknown_ones_fail(wire, node):
    answers = Answers()
    known = NetworkClient(wire.loop, wire.outgoing.connect, lambda: ("localhost", node.port), client_id="test")
    ask(known, 1, answers)
    wire.until(lambda: answers.all)
    unknown = NetworkClient(wire.loop, wire.outgoing.connect, lambda: ("no-such-host.invalid", 1), client_id="test")
    ask(unknown, 1, answers)
    wire.until(lambda: len(answers.all) == 2)
    assert answers.codes == [None, ErrorCode.NETWORK_EXCEPTION]


def test_a_response_with_another_correlation_id_is_refused(wire, node):
    valid = AllocateProducerIdsResponse(producer_id_start=5).encode(0)
    frame = (99).to_bytes(4, "big") + b"\0" + valid
    node.on(AllocateProducerIdsRequest, lambda request, _: len(frame).to_bytes(4, "big") + frame)
    client, answers = client_of(wire, node), Answers()
    ask(client, 1, answers)
    wire.until(lambda: answers.all)
    assert answers.codes == [ErrorCode.UNKNOWN_SERVER_ERROR]
