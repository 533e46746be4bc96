"""Admin requests that a broker forwards to a controller that the test plays: envelope, answer, errors."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from barnabas.wire.messages.headers import DefaultPrincipalData
from barnabas.wire.messages.records.metadata_records import PartitionRecord, TopicRecord
from barnabas.wire.messages.security.sasl import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from barnabas.wire.messages.security.tokens import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.principal import KafkaPrincipal
from tests.broker.forwarded import Forwarded, client_of, creation

LOGGER = 8
TOPIC = 2


def test_the_envelope_has_the_request_as_it_was_with_principal_and_address(wire, controller, member):
    refused = CreatableTopicResult(name="t", error_code=ErrorCode.POLICY_VIOLATION, error_message="no", configs=None)
    forwarded = Forwarded(controller, CreateTopicsResponse(topics=[refused]))
    client = client_of(wire, member)
    client.send(creation(), 5)
    wire.advance(0.3)
    (response,) = client.answers()
    assert response.topics == [refused]
    version, client_id, request = forwarded.requests[0]
    assert (version, client_id) == (5, "test")
    assert request.topics[0].name == "t"
    envelope = forwarded.envelopes[0]
    principal = DefaultPrincipalData.decode(memoryview(envelope.request_principal)[2:], 0)
    assert (principal.type, principal.name, principal.token_authenticated) == ("User", "ANONYMOUS", False)
    assert envelope.client_host_address == bytes([10, 0, 0, 1])


def test_a_created_topic_is_here_when_the_client_is_answered(wire, controller, member):
    result = CreatableTopicResult(name="t", num_partitions=1, replication_factor=1)
    Forwarded(controller, CreateTopicsResponse(topics=[result]))
    client = client_of(wire, member)
    client.send(creation(), 7)
    wire.advance(0.3)
    assert client.answers() == []
    topic_id = b"t" * 16
    partition = PartitionRecord(
        partition_id=0, topic_id=topic_id, replicas=[9], isr=[9], leader=9, directories=[topic_id]
    )
    controller.quorum.write(TopicRecord(name="t", topic_id=topic_id), partition)
    wire.advance(0.2)
    assert len(client.answers()) == 1
    assert "t" in member.image.topics


def test_the_answer_does_not_wait_for_ever_for_the_image(wire, controller, member):
    Forwarded(controller, CreateTopicsResponse(topics=[CreatableTopicResult(name="t")]))
    client = client_of(wire, member)
    client.send(creation(), 7)
    wire.advance(1.5)
    assert len(client.answers()) == 1


def test_not_controller_is_tried_again_until_the_time_of_the_request_is_up(wire, controller, member):
    forwarded = Forwarded(controller, ErrorCode.NOT_CONTROLLER)
    client = client_of(wire, member)
    client.send(creation(timeout_ms=2000), 7)
    wire.advance(1)
    assert len(forwarded.envelopes) > 2
    assert client.answers() == []
    forwarded.answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=36)])
    wire.advance(1)
    (response,) = client.answers()
    assert response.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    forwarded.answer = ErrorCode.NOT_CONTROLLER
    client.send(creation(timeout_ms=1000), 7)
    wire.advance(1.2)
    (response,) = client.answers()
    assert response.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT


def test_errors_between_broker_and_controller_are_not_the_clients(wire, controller, member):
    forwarded = Forwarded(controller, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    client = client_of(wire, member)
    client.send(creation(), 7)
    wire.advance(0.3)
    assert client.answers()[0].topics[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    forwarded.answer = ErrorCode.UNSUPPORTED_VERSION
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    wire.advance(0.3)
    assert client.answers()[0].responses[0].error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_deleted_topic_is_gone_when_the_client_is_answered(wire, controller, member):
    Forwarded(controller, DeleteTopicsResponse(responses=[DeletableTopicResult(name="t", topic_id=b"t" * 16)]))
    client = client_of(wire, member)
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    wire.advance(0.3)
    assert client.answers()[0].responses[0].name == "t"


def test_log_levels_are_changed_here_and_the_rest_at_the_controller(wire, controller, member):
    changed = IncrementalAlterConfigsResponseAlterConfigsResourceResponse(resource_type=TOPIC, resource_name="t")
    forwarded = Forwarded(controller, IncrementalAlterConfigsResponse(responses=[changed]))
    client = client_of(wire, member)
    config = IncrementalAlterConfigsRequestAlterableConfig(name="kafka.raft", config_operation=0, value="WARN")
    logger = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=LOGGER, resource_name="1", configs=[config]
    )
    client.send(IncrementalAlterConfigsRequest(resources=[logger], validate_only=True), 1)
    assert client.answers()[0].responses[0].resource_type == LOGGER
    assert forwarded.envelopes == []
    topic = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[])
    client.send(IncrementalAlterConfigsRequest(resources=[logger, topic], validate_only=True), 1)
    wire.advance(0.3)
    (response,) = client.answers()
    assert [resource.resource_type for resource in response.responses] == [TOPIC, LOGGER]
    assert [resource.resource_type for resource in forwarded.requests[0][2].resources] == [TOPIC]


def test_a_delegation_token_is_forwarded_from_who_may_ask_only(wire, controller, member):
    forwarded = Forwarded(controller, CreateDelegationTokenResponse(token_id="id"))
    client = client_of(wire, member)
    response = client.ask(CreateDelegationTokenRequest(), 3, CreateDelegationTokenResponse)
    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert forwarded.envelopes == []
    client.connection.security_protocol = "SASL_PLAINTEXT"
    client.connection.principal = KafkaPrincipal("User", "alice")
    client.send(CreateDelegationTokenRequest(), 3)
    wire.advance(0.3)
    (response,) = client.answers()
    assert response.token_id == "id"
    assert KafkaPrincipal.from_bytes(forwarded.envelopes[0].request_principal) == KafkaPrincipal("User", "alice")


def test_an_error_of_the_controller_is_that_of_each_user(wire, controller, member):
    Forwarded(controller, ErrorCode.UNSUPPORTED_VERSION)
    client = client_of(wire, member)
    deletion = ScramCredentialDeletion(name="alice", mechanism=1)
    client.send(AlterUserScramCredentialsRequest(deletions=[deletion]), 0)
    wire.advance(0.3)
    (response,) = client.answers()
    assert [(result.user, result.error_code) for result in response.results] == [
        ("alice", ErrorCode.UNSUPPORTED_VERSION)
    ]
