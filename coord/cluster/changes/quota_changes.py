"""AlterClientQuotas (49): the records that change the quotas of clients as requested, and the errors.

Each entity is changed as a whole or not at all. A setting that exists already makes no record, and neither does the
removal of one that does not. Source: Kafka 4.4 `ClientQuotaControlManager`. KIP-546.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from math import isfinite
from typing import Final

from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.quotas.keys import CLIENT_ID, CLIENT_KEYS, ENTITY_TYPES, IP, IP_KEYS, MAX_INT, USER, Entity
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
    OpData,
)
from barnabas.wire.messages.records.metadata_records import ClientQuotaRecord, ClientQuotaRecordEntityData
from barnabas.wire.schema import Message

SETTINGS_PER_STEP: Final = 100
"""Each takes some microseconds."""
EPSILON: Final = 1e-6
"""A whole number may have a fraction as large as this (the error of a float)."""
_SHOWN_ORDER: Final = {CLIENT_ID: 0, USER: 1, IP: 2}
"""The order of an entity's types in Kafka's answers and texts, which is that of a hash map."""


def alter_quotas_steps(
    image: ClusterImage, request: AlterClientQuotasRequest, unknown_hosts: Collection[str]
) -> Generator[None, None, tuple[list[Message], AlterClientQuotasResponse]]:
    """The records and the response; yields after a step of a millisecond at most.

    `unknown_hosts` are the host names in the request that do not resolve.
    """
    records: list[Message] = []
    results: dict[Entity, AlterClientQuotasResponseEntryData] = {}
    count = 0
    for entry in request.entries:
        entity = entity_of(entry.entity)
        is_repeated = entity in results
        result = results.setdefault(entity, _result(entity))
        try:
            if is_repeated:  # Kafka applies the first entry, and the only answer has this error
                raise _invalid(f"Ignoring duplicate entity {_text(entity)}")
            records += _alter(image, entry, unknown_hosts)
        except KafkaError as error:
            result.error_code, result.error_message = int(error.code), error.message
        count += 1 + len(entry.ops)
        if count >= SETTINGS_PER_STEP:
            count = 0
            yield
    return records, AlterClientQuotasResponse(entries=list(results.values()))


def _result(entity: Entity) -> AlterClientQuotasResponseEntryData:
    parts = [AlterClientQuotasResponseEntityData(entity_type=kind, entity_name=name) for kind, name in _shown(entity)]
    return AlterClientQuotasResponseEntryData(error_message=None, entity=parts)


def _shown(entity: Entity) -> list[tuple[str, str | None]]:
    return sorted(entity, key=lambda part: _SHOWN_ORDER.get(part[0], 0))


def entity_of(
    parts: list[AlterClientQuotasRequestEntityData] | list[AlterClientQuotasResponseEntityData],
) -> Entity:
    """The entity as in the image: of several parts of one type the last counts, as in Kafka."""
    return tuple(sorted({part.entity_type: part.entity_name for part in parts}.items()))


def has_quotas(image: ClusterImage, request: AlterClientQuotasRequest, response: AlterClientQuotasResponse) -> bool:
    """Whether an image has the changes that were made of those in a request."""
    refused = {entity_of(result.entity) for result in response.entries if result.error_code}
    for entry in request.entries:
        entity = entity_of(entry.entity)
        quotas = image.quotas.get(entity, {})
        for op in () if entity in refused else entry.ops:
            if quotas.get(op.key) != (None if op.remove else op.value):
                return False
    return True


def _alter(
    image: ClusterImage, entry: AlterClientQuotasRequestEntryData, unknown_hosts: Collection[str]
) -> list[Message]:
    """The records of one entity; KafkaError(INVALID_REQUEST) if it is not to be changed."""
    entity = entity_of(entry.entity)
    keys: set[str] = set()
    for op in entry.ops:
        if op.key in keys:
            raise _invalid(f"Duplicate quota key {op.key} not updating quota for this entity {_text(entity)}")
        keys.add(op.key)
    allowed = _allowed_keys(entity, unknown_hosts)
    current = image.quotas.get(entity, {})
    records: list[Message] = []
    for op in entry.ops:
        if op.remove:
            if op.key in current:
                records.append(_record(entity, op))
            continue
        _check(op, allowed)
        if current.get(op.key) != op.value:
            records.append(_record(entity, op))
    return records


def _allowed_keys(entity: Entity, unknown_hosts: Collection[str]) -> Mapping[str, int | None]:
    """The keys that an entity may have; KafkaError(INVALID_REQUEST) for an entity that there cannot be."""
    if not entity:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
    names = dict(entity)
    if IP not in names:
        return CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId")
    if names[IP] in unknown_hosts:
        raise _invalid(f"{names[IP]} is not a valid IP or resolvable host.")
    return IP_KEYS


def _check(op: OpData, allowed: Mapping[str, int | None]) -> None:
    """KafkaError(INVALID_REQUEST) for a key or a value that there cannot be."""
    key, value = op.key, op.value
    if key not in allowed:
        raise _invalid(f"Invalid configuration key {key}")
    if not isfinite(value):
        raise _invalid(f"Quota {key} must be a finite number")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0")
    largest = allowed[key]
    if largest is None:
        return
    if value > largest:
        kind = "an INT" if largest == MAX_INT else "a LONG"
        raise _invalid(f"Proposed value for {key} is too large for {kind}.")
    if value % 1.0 > EPSILON:
        raise _invalid(f"{key} cannot be a fractional value.")


def _record(entity: Entity, op: OpData) -> ClientQuotaRecord:
    parts = [ClientQuotaRecordEntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    if op.remove:
        return ClientQuotaRecord(entity=parts, key=op.key, remove=True)
    return ClientQuotaRecord(entity=parts, key=op.key, value=op.value)


def _text(entity: Entity) -> str:
    """The entity in Java's notation."""
    names = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in _shown(entity))
    return f"ClientQuotaEntity(entries={{{names}}})"


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
