"""Quotas of users, client ids and addresses (KIP-546).

Errors: `KafkaError` from the broker, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_for
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

ENTITY_TYPES: Final = {"user": "user", "client": "client-id", "ip": "ip"}
"""Ours and Kafka's names."""
KEYS: Final = {
    "producer_byte_rate": "bytes per second that are produced",
    "consumer_byte_rate": "bytes per second that are fetched",
    "request_percentage": "part of a request thread's time, in percent",
    "controller_mutation_rate": "partitions per second that are created and deleted",
    "connection_creation_rate": "connections per second of an address",
}
DEFAULT: Final = None
"""The name of the default entity: its quotas are for all entities without their own."""
EXACT, DEFAULT_MATCH, ANY = 0, 1, 2

Entity = Mapping[str, str | None]
"""`{"user": "alice", "client": None}`: the name of each type, DEFAULT for the default."""


class Quotas(NamedTuple):
    """The quotas of one entity, by key."""

    entity: dict[str, str | None]
    values: dict[str, float]


def list_quotas(cluster: Cluster, entity: Entity, *, every: Sequence[str] = (), strict: bool = False) -> list[Quotas]:
    """The quotas of entities that have these components, `every` with any name; `strict`: these and no others."""
    components = [
        ComponentData(
            entity_type=ENTITY_TYPES[kind], match_type=DEFAULT_MATCH if name is DEFAULT else EXACT, match=name
        )
        for kind, name in entity.items()
    ]
    components += [ComponentData(entity_type=ENTITY_TYPES[kind], match_type=ANY, match=None) for kind in every]
    request = DescribeClientQuotasRequest(components=components, strict=strict)
    ours = {theirs: kind for kind, theirs in ENTITY_TYPES.items()}

    def attempt(deadline: float) -> list[Quotas]:
        response = cluster.any_node(deadline).call(request, DescribeClientQuotasResponse, deadline)
        raise_for(response.error_code, "quotas", response.error_message)
        quotas = [
            Quotas(
                {ours.get(part.entity_type, part.entity_type): part.entity_name for part in entry.entity},
                {quota.key: quota.value for quota in sorted(entry.values, key=lambda value: value.key)},
            )
            for entry in response.entries or ()
        ]
        return sorted(
            quotas, key=lambda quotas_of: sorted((kind, name or "") for kind, name in quotas_of.entity.items())
        )

    return cluster.retry(attempt)


def alter_quotas(
    cluster: Cluster, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool = False
) -> None:
    """Set quotas of one entity, or remove them (None). The broker refuses keys that are not quotas of the entity."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=ENTITY_TYPES[kind], entity_name=name)
            for kind, name in entity.items()
        ],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in changes.items()],
    )

    def attempt(deadline: float) -> None:
        request = AlterClientQuotasRequest(entries=[entry], validate_only=validate_only)
        response = cluster.any_node(deadline).call(request, AlterClientQuotasResponse, deadline)
        for result in response.entries:
            raise_for(result.error_code, f"quotas of {entity_name(entity)}", result.error_message)

    cluster.retry(attempt)


def entity_name(entity: Entity) -> str:
    """`user alice, default client`, for sentences."""
    return ", ".join(f"default {kind}" if name is DEFAULT else f"{kind} {name}" for kind, name in entity.items())
