"""AlterClientQuotas and DescribeClientQuotas over the wire: changes, filters, and refused requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    OpData,
)
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.quotas import Entity, alter, alteration, described

ALICE: Entity = {"user": "alice"}
ALICE_ONE: Entity = {"user": "alice", "client-id": "one"}
ALICE_ANY: Entity = {"user": "alice", "client-id": None}
ANY_USER: Entity = {"user": None}
ONE: Entity = {"client-id": "one"}
ADDRESS: Entity = {"ip": "10.0.0.9"}
ANY_ADDRESS: Entity = {"ip": None}
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def describe(
    client: Client, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=match, match=name) for kind, match, name in components],
        strict=strict,
    )
    return client.ask(request, version, DescribeClientQuotasResponse)


@pytest.mark.parametrize("version", [0, 1])
def test_what_is_set_is_described_and_can_be_changed_and_removed(client: Client, version: int) -> None:
    assert alter(client, ALICE, {"producer_byte_rate": 1024.0, "request_percentage": 12.5}, version=version) == (
        0,
        None,
    )
    assert described(describe(client, version=version)) == [
        (ALICE, {"producer_byte_rate": 1024.0, "request_percentage": 12.5})
    ]
    assert alter(client, ALICE, {"producer_byte_rate": 2048.0, "request_percentage": None}) == (0, None)
    assert described(describe(client)) == [(ALICE, {"producer_byte_rate": 2048.0})]
    assert alter(client, ALICE, {"producer_byte_rate": None, "consumer_byte_rate": None}) == (0, None)
    assert described(describe(client)) == []


@for_each(
    ("components", "strict", "found"),
    [
        ([], False, [ALICE, ALICE_ONE, ALICE_ANY, ANY_USER, ONE, ADDRESS, ANY_ADDRESS]),
        ([], True, []),
        ([("user", EXACT, "alice")], False, [ALICE, ALICE_ONE, ALICE_ANY]),
        ([("user", EXACT, "alice")], True, [ALICE]),
        ([("user", DEFAULT, None)], False, [ANY_USER]),
        ([("user", SPECIFIED, None)], False, [ALICE, ALICE_ONE, ALICE_ANY, ANY_USER]),
        ([("user", SPECIFIED, None)], True, [ALICE, ANY_USER]),
        ([("user", EXACT, "alice"), ("client-id", SPECIFIED, None)], True, [ALICE_ONE, ALICE_ANY]),
        ([("user", SPECIFIED, None), ("client-id", DEFAULT, None)], False, [ALICE_ANY]),
        ([("client-id", EXACT, "one")], False, [ALICE_ONE, ONE]),
        ([("client-id", EXACT, "one")], True, [ONE]),
        ([("ip", EXACT, "10.0.0.9")], False, [ADDRESS]),
        ([("ip", DEFAULT, None)], True, [ANY_ADDRESS]),
        ([("user", EXACT, "nobody")], False, []),
    ],
)
def test_a_filter_selects(
    client: Client, components: list[tuple[str, int, str | None]], strict: bool, found: list[Entity]
) -> None:
    for entity in (ALICE, ALICE_ONE, ALICE_ANY, ANY_USER, ONE, ADDRESS, ANY_ADDRESS):
        key = "connection_creation_rate" if "ip" in entity else "consumer_byte_rate"
        assert alter(client, entity, {key: 100.0}) == (0, None)
    response = described(describe(client, *components, strict=strict))
    assert sorted(sorted(entity) for entity, _ in response) == sorted(sorted(entity) for entity in found)
    assert {frozenset(entity.items()) for entity, _ in response} == {frozenset(entity.items()) for entity in found}


@for_each(
    ("components", "code"),
    [
        ([("", EXACT, "x")], ErrorCode.INVALID_REQUEST),
        ([("group", EXACT, "x")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, "x"), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", EXACT, "x"), ("user", DEFAULT, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_impossible_filter_is_refused(
    client: Client, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    response = describe(client, *components)
    assert response.error_code == code
    assert response.error_message
    assert response.entries is None


@for_each(
    ("entity", "settings", "part"),
    [
        ({}, {"producer_byte_rate": 1.0}, "empty client quota entity"),
        ({"group": "g"}, {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: group"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        ({"ip": "10.0.0.9", "user": "alice"}, {"connection_creation_rate": 1.0}, "IP entity shouldnot be combined"),
        ({"ip": "nobody.invalid"}, {"connection_creation_rate": 1.0}, "is not a valid IP or resolvable host"),
        (ADDRESS, {"producer_byte_rate": 1.0}, "Invalid configuration key producer_byte_rate"),
        (ADDRESS, {"connection_creation_rate": 2.0**31}, "is too large for an INT."),
        (ALICE, {"connection_creation_rate": 1.0}, "Invalid configuration key connection_creation_rate"),
        (ALICE, {"producer_byte_rate": 1.5}, "cannot be a fractional value"),
        (ALICE, {"producer_byte_rate": 0.0}, "must be greater than 0"),
        (ALICE, {"request_percentage": -1.0}, "must be greater than 0"),
        (ALICE, {"request_percentage": float("nan")}, "must be a finite number"),
        (ALICE, {"consumer_byte_rate": 1e300}, "is too large for a LONG."),
    ],
)
def test_an_impossible_quota_is_refused(
    client: Client, entity: Entity, settings: dict[str, float | None], part: str
) -> None:
    code, message = alter(client, entity, settings)
    assert code == ErrorCode.INVALID_REQUEST
    assert part in (message or "")
    assert described(describe(client)) == []


def test_an_entity_is_changed_as_a_whole_or_not_at_all_and_does_not_spoil_others(client: Client) -> None:
    entries = [
        alteration(ALICE, {"producer_byte_rate": 1.0, "nonsense": 1.0}),
        alteration(ONE, {"producer_byte_rate": 2.0}),
        alteration(ONE, {"producer_byte_rate": 3.0}),
    ]
    response = client.ask(AlterClientQuotasRequest(entries=entries), 1, AlterClientQuotasResponse)
    invalid = int(ErrorCode.INVALID_REQUEST)
    assert [entry.error_code for entry in response.entries] == [invalid, invalid]
    names = ", ".join(f"{kind}={name}" for kind, name in sorted(ONE.items()))
    assert response.entries[1].error_message == f"Ignoring duplicate entity ClientQuotaEntity(entries={{{names}}})"
    assert described(describe(client)) == [(ONE, {"producer_byte_rate": 2.0})]


def test_a_key_that_is_named_twice_is_refused(client: Client) -> None:
    ops = [OpData(key="producer_byte_rate", value=1.0), OpData(key="producer_byte_rate", remove=True)]
    entity = [AlterClientQuotasRequestEntityData(entity_type="user", entity_name="alice")]
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=entity, ops=ops)])
    response = client.ask(request, 1, AlterClientQuotasResponse)
    assert response.entries[0].error_code == ErrorCode.INVALID_REQUEST
    assert "Duplicate quota key" in (response.entries[0].error_message or "")


def test_a_type_that_is_named_twice_is_answered_once(client: Client) -> None:
    user = AlterClientQuotasRequestEntityData(entity_type="user", entity_name="alice")
    client_id = AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="c")
    entry = AlterClientQuotasRequestEntryData(entity=[user, user, client_id])
    response = client.ask(AlterClientQuotasRequest(entries=[entry]), 1, AlterClientQuotasResponse)
    parts = [(part.entity_type, part.entity_name) for part in response.entries[0].entity]
    assert parts == [("client-id", "c"), ("user", "alice")]
    assert describe(client).error_message == ""


def test_a_validation_changes_nothing(client: Client) -> None:
    request = AlterClientQuotasRequest(entries=[alteration(ALICE, {"producer_byte_rate": 1.0})], validate_only=True)
    assert client.ask(request, 1, AlterClientQuotasResponse).entries[0].error_code == 0
    assert described(describe(client)) == []


def test_hosts_that_are_too_many_are_not_looked_up(client: Client) -> None:
    entries = [alteration({"ip": f"host-{number}.invalid"}, {"connection_creation_rate": 1.0}) for number in range(21)]
    response = client.ask(AlterClientQuotasRequest(entries=entries), 1, AlterClientQuotasResponse)
    assert {entry.error_code for entry in response.entries} == {int(ErrorCode.INVALID_REQUEST)}
    assert "at most 20" in (response.entries[0].error_message or "")


def test_quotas_outlast_a_restart(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    assert alter(memory.client(), ANY_USER, {"producer_byte_rate": 7.0}) == (0, None)
    memory.broker.controller.close()
    memory.close()
    again = MemoryBroker(tmp_path)
    assert described(describe(again.client())) == [(ANY_USER, {"producer_byte_rate": 7.0})]
    assert again.broker.client_quotas is not None
    again.close()
