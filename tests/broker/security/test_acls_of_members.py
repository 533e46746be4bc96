"""A broker under controllers of other processes: it has the ACLs of their metadata, from the first request on."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import DescribeGroupsRequest
from barnabas.wire.messages.records.metadata_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from barnabas.wire.messages.security.acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.wire.principal import KafkaPrincipal
from tests.broker.fake_controller import FEATURES, FakeController, FakeQuorum, JoinedBroker
from tests.broker.forwarded import Forwarded, client_of
from tests.broker.scripted_nodes import Wire
from tests.support.requests.access_cases import acl_creation

ALICE = KafkaPrincipal("User", "alice")


def acl(number: int, operation: Operation = Operation.READ) -> AccessControlEntryRecord:
    """An ACL of Alice on the group g."""
    return AccessControlEntryRecord(
        id=bytes([number]) * 16,
        resource_type=ResourceType.GROUP,
        resource_name="g",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=operation,
        permission_type=3,
    )


@pytest.fixture
def quorum() -> FakeQuorum:
    quorum = FakeQuorum()
    quorum.write(*FEATURES, acl(1))
    return quorum


@pytest.fixture
def member(wire: Wire, tmp_path: Path, quorum: FakeQuorum) -> JoinedBroker:
    controller = FakeController(wire, quorum, 3000)
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address, authorizer_class_name="barnabas")
    member.controller = controller  # type: ignore[attr-defined]
    member.start()
    wire.advance(1)
    assert member.joined.all == [None]
    return member


def is_refused(wire: Wire, member: JoinedBroker) -> bool:
    client = client_of(wire, member)
    client.connection.principal = ALICE
    client.send(DescribeGroupsRequest(groups=["g"]), 5)
    ((group,),) = [response.groups for response in client.answers()]  # type: ignore[attr-defined]
    return bool(group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED)


def test_the_acls_are_here_when_the_broker_serves(wire: Wire, member: JoinedBroker) -> None:
    assert not is_refused(wire, member)


def test_changes_are_followed(wire: Wire, quorum: FakeQuorum, member: JoinedBroker) -> None:
    quorum.write(RemoveAccessControlEntryRecord(id=acl(1).id))
    wire.advance(1)
    assert is_refused(wire, member)
    quorum.write(acl(2, Operation.DELETE))
    wire.advance(1)
    assert not is_refused(wire, member)


def test_a_created_acl_is_here_when_the_client_is_answered(
    wire: Wire, quorum: FakeQuorum, member: JoinedBroker
) -> None:
    Forwarded(member.controller, CreateAclsResponse(results=[AclCreationResult()]))  # type: ignore[attr-defined]
    client = client_of(wire, member)
    creation = acl_creation(resource_type=ResourceType.GROUP, resource_name="g", principal="User:alice", operation=4)
    client.send(CreateAclsRequest(creations=[creation]), 3)
    wire.advance(0.3)
    assert client.answers() == []
    quorum.write(acl(2, Operation.WRITE))
    wire.advance(1)
    assert [response.results[0].error_code for response in client.answers()] == [0]  # type: ignore[attr-defined]


def test_a_snapshot_replaces_the_acls(wire: Wire, tmp_path: Path, quorum: FakeQuorum) -> None:
    controller = FakeController(wire, quorum, 3000)
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address, authorizer_class_name="barnabas")
    member.follow()
    wire.until(lambda: member.remote.observer.is_caught_up)
    assert not is_refused(wire, member)
    controller.node.close()
    quorum.write(RemoveAccessControlEntryRecord(id=acl(1).id))
    quorum.take_snapshot(FEATURES)
    FakeController(wire, quorum, 3000, controller.node.port)
    wire.advance(3)
    assert member.image.acls == {}
    assert is_refused(wire, member)
