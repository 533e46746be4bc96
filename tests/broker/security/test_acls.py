"""DescribeAcls, CreateAcls, DeleteAcls over the wire, what an authorizer does with them, and its audit log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.apis.forwarding import FORWARDED
from barnabas.broker.config.load import load
from barnabas.coord.security.acls import Operation, PatternType, Permission, ResourceType
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.frame import encode_request
from barnabas.wire.messages import cluster as cl
from barnabas.wire.messages import list_offsets as lo
from barnabas.wire.messages import metadata as md
from barnabas.wire.messages import produce as pr
from barnabas.wire.messages import topics as tp
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import consumer_groups as cg
from barnabas.wire.messages.headers import ResponseHeader
from barnabas.wire.messages.security import acls as a
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes
from tests.broker.security.acl_requests import ALICE, ANY, as_alice, create, delete
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.memory.controller import MemoryController
from tests.support.requests.access_cases import acl_creation

SETS = {"authorizer.class.name": "barnabas", "super.users": "User:ANONYMOUS"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path, SETS)
    yield memory
    memory.close()


def described(client: Client, **chosen: Any) -> set[tuple[str, int, str, str, int]]:
    """(name, pattern type, principal, host, operation) of the ACLs that a filter means."""
    response = client.ask(a.DescribeAclsRequest(**{**ANY, **chosen}), 3, a.DescribeAclsResponse)
    assert response.error_code == 0
    return {
        (resource.resource_name, resource.pattern_type, acl.principal, acl.host, acl.operation)
        for resource in response.resources
        for acl in resource.acls
    }


def topic_error(client: Client, name: str) -> int:
    """The error of looking up the end of a topic's only partition, which takes DESCRIBE."""
    topic = lo.ListOffsetsTopic(name=name, partitions=[lo.ListOffsetsPartition(timestamp=-1)])
    response = client.ask(lo.ListOffsetsRequest(topics=[topic]), 7, lo.ListOffsetsResponse)
    return response.topics[0].partitions[0].error_code


def test_acls_are_created_described_and_deleted(memory: MemoryBroker) -> None:
    client = memory.client()
    prefixed = acl_creation(resource_name="or", resource_pattern_type=PatternType.PREFIXED, host="10.0.0.0/8")
    assert create(client, acl_creation(), prefixed, acl_creation(principal="User:*")) == [(0, None)] * 3
    everything = described(client)
    assert everything == {
        ("other", 3, "User:bob", "*", 3),
        ("other", 3, "User:*", "*", 3),
        ("or", 4, "User:bob", "10.0.0.0/8", 3),
    }
    assert described(client, resource_name_filter="orders", pattern_type_filter=PatternType.MATCH) == {
        ("or", 4, "User:bob", "10.0.0.0/8", 3)
    }
    assert described(client, principal_filter="User:*") == {("other", 3, "User:*", "*", 3)}
    assert described(client, operation=Operation.WRITE) == set()
    deleted = delete(client, principal_filter="User:bob")
    assert {acl.resource_name for acl in deleted.matching_acls} == {"other", "or"}
    assert described(client) == {("other", 3, "User:*", "*", 3)}


def test_an_acl_that_is_there_already_is_created_once(memory: MemoryBroker) -> None:
    client = memory.client()
    assert create(client, acl_creation(), acl_creation()) == [(0, None)] * 2
    offset = memory.broker.image.offset
    assert create(client, acl_creation()) == [(0, None)]
    assert (len(memory.broker.image.acls), memory.broker.image.offset) == (1, offset)


@for_each(
    ("fields", "text"),
    [
        ({"resource_type": ResourceType.CLUSTER}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": PatternType.MATCH}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"permission_type": 1}, "Invalid permissionType ANY"),
        ({"principal": "bob"}, "Could not parse principal from `bob`"),
        ({"host": ""}, "Host pattern cannot be null or empty"),
        ({"host": "10.0.0.0/33"}, "Invalid CIDR notation '10.0.0.0/33'"),
    ],
)
def test_an_invalid_acl_is_refused_and_the_others_are_created(
    memory: MemoryBroker, fields: dict[str, Any], text: str
) -> None:
    (refused, created) = create(memory.client(), acl_creation(**fields), acl_creation())
    assert refused[0] == ErrorCode.INVALID_REQUEST
    assert text in (refused[1] or "")
    assert created == (0, None)
    assert len(memory.broker.image.acls) == 1


def test_unknown_values(memory: MemoryBroker) -> None:
    client = memory.client()
    assert delete(client, resource_type_filter=99).error_message == "Unknown patternFilter."
    assert delete(client, operation=99).error_message == "Unknown entryFilter."
    with pytest.raises(ProtocolError, match="UNKNOWN"):
        memory.client().send(a.CreateAclsRequest(creations=[acl_creation(operation=0)]), 3)


def test_ranges_of_hosts_need_their_metadata_version(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path, SETS)
    memory.broker.image.features["metadata.version"] = 31
    ((code, text),) = create(memory.client(), acl_creation(host="10.0.0.0/8"))
    assert code == ErrorCode.UNSUPPORTED_VERSION
    assert "4.4-IV1" in (text or "")
    memory.close()


def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    client = memory.client()
    assert create(client, acl_creation(), acl_creation())[1][0] == ErrorCode.SECURITY_DISABLED
    assert delete(client).error_code == ErrorCode.SECURITY_DISABLED
    response = client.ask(a.DescribeAclsRequest(**ANY), 3, a.DescribeAclsResponse)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    memory.close()


def test_a_change_of_acls_is_in_effect_when_it_is_answered(memory: MemoryBroker) -> None:
    memory.create_topic("orders")
    client, alice = memory.client(), as_alice(memory)
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert topic_error(alice, "orders") == refused
    create(client, acl_creation(resource_name="orders", principal="User:alice"))
    assert topic_error(alice, "orders") == 0
    create(client, acl_creation(resource_name="*", principal="User:*", operation=Operation.ALL, permission_type=2))
    assert topic_error(alice, "orders") == refused
    delete(client, permission_type=Permission.DENY)
    assert topic_error(alice, "orders") == 0


def test_acls_survive_a_restart(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path, SETS)
    memory.create_topic("orders")
    create(memory.client(), acl_creation(resource_name="ord", resource_pattern_type=4, principal="User:alice"))
    memory.close()
    again = MemoryBroker(tmp_path, SETS)
    assert topic_error(as_alice(again), "orders") == 0
    again.close()


def test_a_prefix_allows_what_begins_with_it(memory: MemoryBroker) -> None:
    for name in ("orders", "offers"):
        memory.create_topic(name)
    create(memory.client(), acl_creation(resource_name="ord", resource_pattern_type=4, principal="User:alice"))
    alice = as_alice(memory)
    response = alice.ask(md.MetadataRequest(topics=None), 12, md.MetadataResponse)
    assert [topic.name for topic in response.topics] == ["orders"]


def test_authorized_operations_are_those_that_are_allowed(memory: MemoryBroker) -> None:
    memory.create_topic("orders")
    create(memory.client(), acl_creation(resource_name="orders", principal="User:alice"))
    request = md.MetadataRequest(
        topics=[md.MetadataRequestTopic(name="orders")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = as_alice(memory).ask(request, 9, md.MetadataResponse)
    assert response.topics[0].topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE
    assert response.cluster_authorized_operations == 0
    response = memory.client().ask(request, 9, md.MetadataResponse)
    assert response.topics[0].topic_authorized_operations == sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))


def test_a_regular_expression_stands_for_what_the_member_may_describe(memory: MemoryBroker) -> None:
    topic_id = memory.create_topic("orders")
    memory.create_topic("offers")
    admin, alice = memory.client(), as_alice(memory)
    admin.ask(g.FindCoordinatorRequest(coordinator_keys=["g"]), 6, g.FindCoordinatorResponse)
    create(
        admin,
        acl_creation(resource_type=ResourceType.GROUP, resource_name="g", principal="User:alice"),
        acl_creation(resource_name="orders", principal="User:alice"),
    )

    def beat(client: Client, epoch: int) -> cg.ConsumerGroupHeartbeatResponse:
        request = cg.ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="m",
            member_epoch=epoch,
            rebalance_timeout_ms=1000,
            subscribed_topic_regex="o.*",
            topic_partitions=[],
        )
        response = client.ask(request, 1, cg.ConsumerGroupHeartbeatResponse)
        assert response.error_code == 0, response
        memory.advance(3)
        return response

    def assigned(client: Client) -> set[bytes]:
        response = beat(client, 0)
        while (
            response := beat(client, response.member_epoch)
        ).assignment is None or not response.assignment.topic_partitions:
            assert response.member_epoch < 9
        return {topic.topic_id for topic in response.assignment.topic_partitions}

    assert assigned(alice) == {topic_id}


def test_who_may_not_describe_a_topic_does_not_learn_its_name(memory: MemoryBroker) -> None:
    topic_id = memory.create_topic("orders")
    request = tp.DeleteTopicsRequest(topics=[tp.DeleteTopicState(name=None, topic_id=topic_id)])
    alice = as_alice(memory)
    (result,) = alice.ask(request, 6, tp.DeleteTopicsResponse).responses
    assert (result.name, result.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    create(memory.client(), acl_creation(resource_name="orders", principal="User:alice", operation=Operation.DESCRIBE))
    (result,) = alice.ask(request, 6, tp.DeleteTopicsResponse).responses
    assert (result.name, result.error_code) == ("orders", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    create(memory.client(), acl_creation(resource_name="orders", principal="User:alice", operation=Operation.DELETE))
    (result,) = alice.ask(request, 6, tp.DeleteTopicsResponse).responses
    assert result.error_code == 0


def test_the_audit_log_has_kafkas_form(memory: MemoryBroker, caplog: pytest.LogCaptureFixture) -> None:
    memory.create_topic("orders")
    create(memory.client(), acl_creation(resource_name="orders", principal="User:alice"))
    alice = as_alice(memory)
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        topic_error(alice, "other")
        topic_error(alice, "orders")
        alice.ask(md.MetadataRequest(topics=None), 12, md.MetadataResponse)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    head = "Principal = User:alice is {} operation = DESCRIBE from host = 10.0.0.1 on resource = Topic:LITERAL:{} "
    acl = "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, "
    rule = f"MatchingAcl(acl={acl}operation=READ, permissionType=ALLOW])"
    assert lines == [
        (
            "INFO",
            head.format("Denied", "other") + "for request = ListOffsets with resourceRefCount = 1 "
            "based on rule DefaultDeny",
        ),
        (
            "DEBUG",
            head.format("Allowed", "orders") + "for request = ListOffsets with resourceRefCount = 1 "
            f"based on rule {rule}",
        ),
        (
            "DEBUG",
            head.format("Allowed", "orders") + f"for request = Metadata with resourceRefCount = 1 based on rule {rule}",
        ),
    ]


def test_a_producer_that_may_write_to_no_topic_is_in_the_audit_log(
    memory: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """Its first request asks for a producer id; without the line an operator would see nothing of it."""
    alice = as_alice(memory)
    request = pr.InitProducerIdRequest(transactional_id=None)
    with caplog.at_level(logging.INFO, "kafka.authorizer.logger"):
        response = alice.ask(request, 4, pr.InitProducerIdResponse)
    assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("Principal = User:alice is Denied operation = IDEMPOTENT_WRITE from host = 10.0.0.1 ")
    assert "on resource = Cluster:LITERAL:kafka-cluster for request = InitProducerId " in line


def test_a_controller_decides_for_the_client_of_a_forwarded_request(tmp_path: Path) -> None:
    """The broker that forwards may everything; the client whose request is in the envelope may not."""
    memory = MemoryController(tmp_path, SETS)
    request = a.CreateAclsRequest(creations=[acl_creation()])

    def forwarded(principal: KafkaPrincipal) -> Any:
        frame = b"".join(map(chunk_bytes, encode_request(request, 3, 7, "c")))
        envelope = cl.EnvelopeRequest(
            request_data=frame[4:], request_principal=principal.to_bytes(), client_host_address=bytes([10, 0, 0, 1])
        )
        response = memory.client().ask(envelope, 0)
        assert response.error_code == 0
        head = len(ResponseHeader(correlation_id=7).encode(1))
        return message_for(ApiKey.CREATE_ACLS)[1].decode(bytes(response.response_data)[head:], 3)

    assert forwarded(ALICE).results[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert memory.node.image.acls == {}
    assert forwarded(KafkaPrincipal("User", "ANONYMOUS")).results[0].error_code == 0
    assert len(memory.node.image.acls) == 1


def test_brokers_without_a_controller_forward_changes_of_acls() -> None:
    assert {ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS} <= FORWARDED
    assert ApiKey.DESCRIBE_ACLS not in FORWARDED


@pytest.mark.parametrize(
    ("sets", "text"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "Barnabas runs no Java classes"),
        ({"authorizer.class.name": "barnabas", "super.users": "admin"}, "principalType:principalName"),
    ],
)
def test_a_broker_does_not_start_with(sets: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        load(sets, {}, None, "dev")


def test_keys_of_the_authorizer_without_one_are_warned_of() -> None:
    config = load({"super.users": "User:admin"}, {}, None, "dev")
    assert "super.users has no effect without authorizer.class.name" in config.warnings


def test_everybody_may_use_what_no_acl_concerns_if_so_configured(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path, {**SETS, "allow.everyone.if.no.acl.found": "true"})
    memory.create_topic("orders")
    alice = as_alice(memory)
    assert topic_error(alice, "orders") == 0
    create(memory.client(), acl_creation(resource_name="orders"))
    assert topic_error(alice, "orders") == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    memory.close()
