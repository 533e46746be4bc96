"""Admin requests that a broker forwards to a controller that the test plays: envelope, answer, errors."""

from __future__ import annotations

from types import SimpleNamespace

from barnabas.broker.apis.dispatcher import Dispatcher
from barnabas.broker.apis.registry import FORWARDING
from barnabas.broker.net.connection import Connection
from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import encode_response, parse_request_header
from barnabas.wire.messages.cluster import EnvelopeRequest, EnvelopeResponse
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)
from barnabas.wire.messages.headers import DefaultPrincipalData
from barnabas.wire.messages.metadata_records import PartitionRecord, TopicRecord
from barnabas.wire.messages.sasl import AlterUserScramCredentialsRequest, ScramCredentialDeletion
from barnabas.wire.messages.tokens import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.registry import message_for
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.broker.fake_controller import FakeController, Member
from tests.broker.scripted_nodes import Wire
from tests.support.memory.broker import Client

LOGGER = 8
TOPIC = 2


class Forwarded:
    """The controller's side: unpacks envelopes and answers the requests in them."""

    def __init__(self, controller: FakeController, answer: Message | ErrorCode) -> None:
        self.answer = answer
        self.envelopes: list[EnvelopeRequest] = []
        self.requests: list[tuple[int, str | None, Message]] = []
        controller.node.on(EnvelopeRequest, self._envelope)

    def _envelope(self, envelope: EnvelopeRequest, _: int) -> EnvelopeResponse:
        self.envelopes.append(envelope)
        header, position = parse_request_header(envelope.request_data)
        version = header.request_api_version
        request, _end = message_for(header.request_api_key)[0].codec(version).parse(envelope.request_data, position)
        self.requests.append((version, header.client_id, request))
        if isinstance(self.answer, ErrorCode):
            return EnvelopeResponse(error_code=self.answer)
        frame = b"".join(map(chunk_bytes, encode_response(self.answer, version, header.correlation_id)))
        return EnvelopeResponse(response_data=frame[4:])


def client_of(wire: Wire, member: Member) -> Client:
    memory = SimpleNamespace(
        broker=member.broker, clock=SimpleNamespace(now=wire.time), create_topic=None, flushes=None, disk=None
    )
    client = Client(memory)  # type: ignore[arg-type]
    client.connection = Connection(
        Dispatcher(member.broker, FORWARDING).dispatch,
        listener="PLAINTEXT",
        peer=("10.0.0.1", 5000),
        local=("127.0.0.1", 9092),
        max_frame_bytes=1 << 20,
        buffers=client.buffers,
        on_output=client._on_output,
        clock=lambda: wire.time,
    )
    return client


def creation(name: str = "t", **fields: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=fields.get("timeout_ms", 5000))


def test_the_envelope_has_the_request_as_it_was_with_principal_and_address(wire, controller, member):
    refused = CreatableTopicResult(name="t", error_code=ErrorCode.POLICY_VIOLATION, error_message="no", configs=None)
    forwarded = Forwarded(controller, CreateTopicsResponse(topics=[refused]))
    client = client_of(wire, member)
    client.send(creation(), 5)
    wire.advance(0.3)
    (answer,) = client.answers()
    assert answer.topics == [refused]
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
    (answer,) = client.answers()
    assert answer.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    forwarded.answer = ErrorCode.NOT_CONTROLLER
    client.send(creation(timeout_ms=1000), 7)
    wire.advance(1.2)
    (answer,) = client.answers()
    assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT


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
    (answer,) = client.answers()
    assert [one.resource_type for one in answer.responses] == [TOPIC, LOGGER]
    assert [one.resource_type for one in forwarded.requests[0][2].resources] == [TOPIC]


def test_a_delegation_token_is_forwarded_from_who_may_ask_only(wire, controller, member):
    forwarded = Forwarded(controller, CreateDelegationTokenResponse(token_id="id"))
    client = client_of(wire, member)
    answer = client.ask(CreateDelegationTokenRequest(), 3, CreateDelegationTokenResponse)
    assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert forwarded.envelopes == []
    client.connection.security_protocol = "SASL_PLAINTEXT"
    client.connection.principal = KafkaPrincipal("User", "alice")
    client.send(CreateDelegationTokenRequest(), 3)
    wire.advance(0.3)
    (answer,) = client.answers()
    assert answer.token_id == "id"
    assert KafkaPrincipal.from_bytes(forwarded.envelopes[0].request_principal) == KafkaPrincipal("User", "alice")


def test_an_error_of_the_controller_is_that_of_each_user(wire, controller, member):
    Forwarded(controller, ErrorCode.UNSUPPORTED_VERSION)
    client = client_of(wire, member)
    deletion = ScramCredentialDeletion(name="alice", mechanism=1)
    client.send(AlterUserScramCredentialsRequest(deletions=[deletion]), 0)
    wire.advance(0.3)
    (answer,) = client.answers()
    assert [(one.user, one.error_code) for one in answer.results] == [("alice", ErrorCode.UNSUPPORTED_VERSION)]
