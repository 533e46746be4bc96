"""Sets quotas of clients over the wire, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    DescribeClientQuotasResponse,
    OpData,
)
from tests.support.memory.broker import Client

Entity = Mapping[str, str | None]
"""Names by type; None is the default of its type."""


def alteration(entity: Entity, settings: Mapping[str, float | None]) -> AlterClientQuotasRequestEntryData:
    """The entry of a request that changes an entity; None removes a setting."""
    return AlterClientQuotasRequestEntryData(
        entity=[
            AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()
        ],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in settings.items()
        ],
    )


def alter(
    client: Client, entity: Entity, settings: Mapping[str, float | None], *, version: int = 1
) -> tuple[int, str | None]:
    """Change the quotas of an entity; its error and message."""
    request = AlterClientQuotasRequest(entries=[alteration(entity, settings)])
    (entry,) = client.ask(request, version, AlterClientQuotasResponse).entries
    assert {part.entity_type: part.entity_name for part in entry.entity} == dict(entity)
    return entry.error_code, entry.error_message


def described(response: DescribeClientQuotasResponse) -> list[tuple[Entity, Mapping[str, float]]]:
    """The entities of an answer with their settings."""
    assert response.error_code == 0, response
    assert response.entries is not None
    return [
        (
            {part.entity_type: part.entity_name for part in entry.entity},
            {setting.key: setting.value for setting in entry.values},
        )
        for entry in response.entries
    ]
