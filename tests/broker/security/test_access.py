"""Authorization: every row of `scripts.pages.access_rules`, over the wire, with and without each of its needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from barnabas.broker.apis.registry import BROKER_APIS, CONTROLLER_APIS, served_versions
from barnabas.coord.security.acls import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.frame import encode_request
from barnabas.wire.messages import produce as p
from barnabas.wire.messages.groups import consumer_groups as cg
from barnabas.wire.messages.groups import share_groups as sg
from barnabas.wire.messages.security import acls as a
from barnabas.wire.messages.security.tokens import CreateDelegationTokenRequest
from barnabas.wire.messages.topics import AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic
from barnabas.wire.principal import KafkaPrincipal
from barnabas.wire.schema import Message, Struct
from scripts.pages.access_rules import BROKER_RULES, CONTROLLER_RULES, Need, Option, Rule
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.memory.controller import MemoryController
from tests.support.requests.access_cases import (
    BROKER_CASES,
    CONTROLLER_CASES,
    GROUP,
    OWNER,
    TOPIC,
    TXN,
    acl_creation,
    streams_heartbeat,
)

ALICE = KafkaPrincipal("User", "alice")
SETS = {
    "authorizer.class.name": "barnabas",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
NAMED = {
    ResourceType.TOPIC: TOPIC,
    ResourceType.GROUP: GROUP,
    ResourceType.TRANSACTIONAL_ID: TXN,
    ResourceType.USER: OWNER.name,
}
REFUSALS = {int(code) for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")}
WITH_A_SESSION = {ApiKey.SHARE_ACKNOWLEDGE}


class Asker:
    """A broker or a controller, and what Alice may do there."""

    def __init__(self, memory: Any, topic_id: bytes) -> None:
        self.memory = memory
        self.topic_id = topic_id
        self.admin = memory.client()

    def allow(self, options: Iterable[Option]) -> None:
        """Let Alice do this, and nothing else."""
        everything = a.DeleteAclsFilter(
            resource_type_filter=1,
            resource_name_filter=None,
            pattern_type_filter=1,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        assert _ask(self.admin, a.DeleteAclsRequest(filters=[everything]), 3).filter_results[0].error_code == 0
        creations = [
            acl_creation(
                resource_type=kind,
                resource_name=CLUSTER_NAME if kind == ResourceType.CLUSTER else "*",
                principal="User:alice",
                operation=operation,
            )
            for operation, kind in options
        ]
        response = _ask(self.admin, a.CreateAclsRequest(creations=creations), 3)
        assert not any(result.error_code for result in response.results), response

    def ask(self, request: Message, version: int) -> Any:
        client = self.memory.client()
        client.connection.principal = ALICE
        client.connection.security_protocol = "SASL_PLAINTEXT"  # tokens are for authenticated clients
        return _ask(client, request, version)


def _ask(client: Client, request: Message, version: int) -> Any:
    client.send(request, version)
    answers = client.answers()
    if not answers:
        client.memory.advance(0.1)
        answers = client.answers()
    (response,) = answers
    return response


def refusals(response: Any) -> set[int]:
    """The authorization errors anywhere in a response."""
    return {code for code in _codes(response) if code in REFUSALS}


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _codes(item)
    elif isinstance(value, Struct | Message):
        for name in value.__slots__:
            field_value = getattr(value, name, None)
            if name.endswith("error_code"):
                yield field_value
            else:
                yield from _codes(field_value)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """A broker with a topic, offsets of a group, a transactional id, and groups of each type with an assignment."""
    memory = MemoryBroker(tmp_path_factory.mktemp("access"), SETS)
    asker = Asker(memory, memory.create_topic(TOPIC))
    admin = asker.admin
    for of in ("of a group", "of a transactional id", "of a share partition"):
        _ask(admin, *BROKER_CASES[ApiKey.FIND_COORDINATOR, of](b""))
    commit, version = BROKER_CASES[ApiKey.OFFSET_COMMIT, ""](b"")
    commit.group_id = GROUP  # type: ignore[attr-defined]
    assert not any(_codes(_ask(admin, commit, version)))
    assert not any(_codes(_ask(admin, p.InitProducerIdRequest(transactional_id=TXN, transaction_timeout_ms=1000), 4)))
    for epoch in (0, 1, 2):
        _ask(
            admin,
            cg.ConsumerGroupHeartbeatRequest(
                group_id="consumers",
                member_id="m",
                member_epoch=epoch,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=[],
            ),
            1,
        )
        share = sg.ShareGroupHeartbeatRequest(
            group_id="shares", member_id="m", member_epoch=epoch, subscribed_topic_names=[TOPIC]
        )
        _ask(admin, share, 1)
        memory.advance(3)
    _ask(admin, streams_heartbeat("streams", "m"), 0)
    for epoch in (0, -1):
        leaving = sg.ShareGroupHeartbeatRequest(
            group_id="empty-shares", member_id="m", member_epoch=epoch, subscribed_topic_names=[TOPIC]
        )
        _ask(admin, leaving, 1)
    owner = memory.client()
    owner.connection.principal = OWNER
    owner.connection.security_protocol = "SASL_PLAINTEXT"
    assert not _ask(owner, CreateDelegationTokenRequest(max_lifetime_ms=-1), 3).error_code
    yield asker
    memory.close()


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """A controller of a cluster."""
    sets = {"authorizer.class.name": "barnabas", "super.users": "User:ANONYMOUS"}
    memory = MemoryController(tmp_path_factory.mktemp("controller"), sets)
    return Asker(ControllerClients(memory), b"")


class ControllerClients:
    """A controller, as `Asker` uses a broker."""

    def __init__(self, memory: MemoryController) -> None:
        self.memory = memory

    def client(self) -> Any:
        return self.memory.client()


def _rows(rules: tuple[Rule, ...]) -> list[Any]:
    tested = [rule for rule in rules if rule.needs and rule.api not in WITH_A_SESSION]
    return [pytest.param(rule, id=f"{rule.api.name} {rule.case}".strip()) for rule in tested]


def _refused_as(rule: Rule, need: Need, response: Any) -> bool:
    """Whether the response is the refusal for a client that lacks a need."""
    if need.error is not None:
        return refusals(response) == {int(need.error)}
    return not refusals(response) and NAMED[need.options[-1][1]] not in repr(response)


def _check(asker: Asker, rule: Rule, cases: dict[Any, Any]) -> None:
    case = cases[rule.api, rule.case]
    for missing in rule.needs:
        asker.allow(need.options[0] for need in rule.needs if need is not missing)
        response = asker.ask(*case(asker.topic_id))
        assert _refused_as(rule, missing, response), (missing, response)
        for option in missing.options:
            asker.allow([option, *(need.options[0] for need in rule.needs if need is not missing)])
            response = asker.ask(*case(asker.topic_id))
            assert not refusals(response), (option, response)
            if missing.error is None:
                assert NAMED[missing.options[-1][1]] in repr(response)


@for_each("rule", _rows(BROKER_RULES))
def test_who_may_not_hears_the_error_of_the_table(broker: Asker, rule: Rule) -> None:
    _check(broker, rule, BROKER_CASES)


@for_each("rule", _rows(CONTROLLER_RULES))
def test_who_may_not_hears_it_from_a_controller(controller: Asker, rule: Rule) -> None:
    _check(controller, rule, CONTROLLER_CASES)


@for_each(
    "rule",
    [
        row
        for row in _rows(BROKER_RULES)
        if row.values[0].api in CONTROLLER_APIS.keys() - {ApiKey.FETCH}
        and row.values[0].case != "configs in the response"
        and row.values[0].api not in {rule.api for rule in CONTROLLER_RULES}
    ],
)
def test_controllers_have_the_rules_of_brokers(controller: Asker, rule: Rule) -> None:
    for missing in rule.needs:
        controller.allow(need.options[0] for need in rule.needs if need is not missing)
        response = controller.ask(*BROKER_CASES[rule.api, rule.case](bytes(16)))
        assert _refused_as(rule, missing, response), (missing, response)


@for_each("key", BROKER_CASES, ids=lambda key: f"{key[0].name} {key[1]}".strip())
def test_a_refusal_can_be_said_in_every_version(broker: Asker, key: tuple[ApiKey, str]) -> None:
    broker.allow([])
    first, last = served_versions(key[0])
    answered = 0
    for version in range(first, last + 1):
        request, _ = BROKER_CASES[key](broker.topic_id)
        try:
            list(encode_request(request, version, 1, "x"))
        except (ValueError, KafkaError):
            continue  # it says something that this version has no field for
        broker.ask(request, version)
        answered += 1
    assert answered


def test_every_request_is_in_the_table() -> None:
    assert {rule.api for rule in BROKER_RULES} == BROKER_APIS.keys()
    listed = {rule.api for rule in CONTROLLER_RULES}
    assert CONTROLLER_APIS.keys() <= listed | {rule.api for rule in BROKER_RULES}
    assert listed <= CONTROLLER_APIS.keys()


def test_acknowledging_takes_reading_group_and_topic(broker: Asker) -> None:
    read_group, read_topic = (Operation.READ, ResourceType.GROUP), (Operation.READ, ResourceType.TOPIC)
    fetch, version = BROKER_CASES[ApiKey.SHARE_FETCH, ""](broker.topic_id)
    assert isinstance(fetch, sg.ShareFetchRequest)
    broker.allow([read_group, read_topic])
    assert not refusals(broker.ask(fetch, version))
    part = sg.AcknowledgePartition(
        partition_index=0,
        acknowledgement_batches=[
            sg.ShareAcknowledgeRequestAcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
        ],
    )
    topics = [sg.AcknowledgeTopic(topic_id=broker.topic_id, partitions=[part])]
    for epoch, (allowed, refused) in enumerate(
        [([read_topic], ErrorCode.GROUP_AUTHORIZATION_FAILED), ([read_group], ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    ):
        broker.allow(allowed)
        request = sg.ShareAcknowledgeRequest(
            group_id=fetch.group_id, member_id=fetch.member_id, share_session_epoch=max(1, epoch), topics=topics
        )
        assert refusals(broker.ask(request, 1)) == {int(refused)}


def test_a_refused_reassignment_repeats_the_error_for_each_partition(broker: Asker) -> None:
    """As in Kafka, whose clients look there."""
    partitions = [ReassignablePartition(partition_index=index, replicas=[1]) for index in (0, 3)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=TOPIC, partitions=partitions)])
    broker.allow(())
    response = broker.ask(request, 1)
    refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert response.error_code == refused
    (topic,) = response.responses
    assert [(result.partition_index, result.error_code) for result in topic.partitions] == [(0, refused), (3, refused)]
