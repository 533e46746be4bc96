"""Quotas of clients and addresses: read and change (KIP-546).

An entity is a mapping from `user`, `client-id` or `ip` to a name; None is the default of the type. Errors: `KafkaError`
from the broker, `TimedOut`, `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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

Entity = dict[str, str | None]
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


class AnyName:
    """In a filter: every name of a type, the default included."""


ANY_NAME: Final = AnyName()


def describe_quotas(
    cluster: Cluster, wanted: Mapping[str, str | AnyName | None]
) -> list[tuple[Entity, dict[str, float]]]:
    """The quotas of the entities that have these types and no others, with their settings."""
    request = DescribeClientQuotasRequest(
        components=[_component(kind, name) for kind, name in wanted.items()], strict=True
    )

    def attempt(deadline: float) -> list[tuple[Entity, dict[str, float]]]:
        answer = cluster.any_node(deadline).call(request, DescribeClientQuotasResponse, deadline)
        raise_for(answer.error_code, "quotas", answer.error_message)
        return [
            (
                {part.entity_type: part.entity_name for part in entry.entity},
                {setting.key: setting.value for setting in entry.values},
            )
            for entry in answer.entries or ()
        ]

    return cluster.retry(attempt)


def _component(kind: str, name: str | AnyName | None) -> ComponentData:
    if isinstance(name, AnyName):
        return ComponentData(entity_type=kind, match_type=SPECIFIED, match=None)
    return ComponentData(entity_type=kind, match_type=DEFAULT if name is None else EXACT, match=name)


def alter_quotas(cluster: Cluster, entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> None:
    """Change settings of an entity, all or none; None removes one."""
    entry = AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ],
    )
    request = AlterClientQuotasRequest(entries=[entry])

    def attempt(deadline: float) -> None:
        (result,) = cluster.any_node(deadline).call(request, AlterClientQuotasResponse, deadline).entries
        raise_for(result.error_code, "quotas", result.error_message)

    cluster.retry(attempt)
