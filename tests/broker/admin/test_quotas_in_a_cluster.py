"""Quotas on a broker whose controller is another process: changes are forwarded, limits and answers come from it."""

from __future__ import annotations

from pathlib import Path

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import parse_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.headers import DefaultPrincipalData
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from barnabas.wire.messages.records.metadata_records import ClientQuotaRecord, ClientQuotaRecordEntityData
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tests.broker.fake_controller import FakeController, JoinedBroker
from tests.broker.forwarded import Forwarded, client_of, creation, envelope
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import Client
from tests.support.memory.controller import ControllerClient, MemoryController
from tests.support.requests.quotas import alteration, described

TEST = {"client-id": "test"}


def quota(key: str, value: float) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[ClientQuotaRecordEntityData(entity_type="client-id", entity_name="test")], key=key, value=value
    )


def is_served(client: Client) -> bool:
    client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    return len(client.answers()) == 1


def test_a_change_is_forwarded_and_here_when_it_is_answered(
    wire: Wire, controller: FakeController, member: JoinedBroker
) -> None:
    forwarded = Forwarded(controller, AlterClientQuotasResponse(entries=[AlterClientQuotasResponseEntryData()]))
    client = client_of(wire, member)
    client.send(AlterClientQuotasRequest(entries=[alteration(TEST, {"producer_byte_rate": 7.0})]), 1)
    wire.advance(0.3)
    assert len(forwarded.requests) == 1
    assert client.answers() == []
    controller.quorum.write(quota("producer_byte_rate", 7.0))
    wire.advance(0.3)
    assert len(client.answers()) == 1
    response = client.ask(DescribeClientQuotasRequest(), 1, DescribeClientQuotasResponse)
    assert described(response) == [(TEST, {"producer_byte_rate": 7.0})]
    assert member.broker.client_quotas is not None


def test_the_controllers_throttle_time_mutes_the_client_here(
    wire: Wire, controller: FakeController, member: JoinedBroker
) -> None:
    controller.quorum.write(quota("controller_mutation_rate", 1.0))
    wire.advance(1)
    refused = CreatableTopicResult(name="t", error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED, configs=None)
    Forwarded(controller, CreateTopicsResponse(topics=[refused], throttle_time_ms=5000))
    client = client_of(wire, member)
    client.send(creation(), 7)
    wire.advance(0.3)
    (response,) = client.answers()
    assert isinstance(response, CreateTopicsResponse)
    assert response.throttle_time_ms == 5000
    assert not is_served(client)
    wire.advance(5)
    client.connection.resume(wire.now)
    assert len(client.answers()) == 1


def enveloped(client: ControllerClient, request: CreateTopicsRequest, name: str) -> CreateTopicsResponse:
    """The answer to a request in an envelope, which a broker has sent for this user."""
    principal = b"\0\0" + DefaultPrincipalData(type="User", name=name).encode(0)
    response = client.ask(envelope(request, 7, request_principal=principal), 0)
    assert response.error_code == 0, response
    _, position = parse_response_header(response.response_data, ApiKey.CREATE_TOPICS, 7)
    return CreateTopicsResponse.decode(response.response_data[position:], 7)


def test_a_controller_charges_the_client_of_an_envelope_and_not_its_broker(tmp_path: Path) -> None:
    memory = MemoryController(tmp_path)
    memory.unfence(1)
    client = memory.client()
    entries = [alteration({"user": "alice"}, {"controller_mutation_rate": 1.0})]
    assert client.ask(AlterClientQuotasRequest(entries=entries), 1).entries[0].error_code == 0
    assert memory.node.client_quotas is not None
    topic = CreatableTopic(name="burst", num_partitions=20, replication_factor=1)
    first = enveloped(client, CreateTopicsRequest(topics=[topic]), "alice")
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0)
    again = CreateTopicsRequest(topics=[CreatableTopic(name="more", num_partitions=1, replication_factor=1)])
    refused = enveloped(client, again, "alice")
    assert (refused.topics[0].error_code, refused.throttle_time_ms) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 9000)
    other = enveloped(client, again, "bob")
    assert (other.topics[0].error_code, other.throttle_time_ms) == (0, 0)
    memory.close()
