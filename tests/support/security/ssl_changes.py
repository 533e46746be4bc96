"""Changes of the keys `ssl.*` of a broker while it serves."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

WAIT_S = 60.0


def alter(admin: AdminClient, name: str, value: str) -> None:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def replace_all(admin: AdminClient, values: dict[str, str]) -> None:
    """AlterConfigs, which IncrementalAlterConfigs has replaced."""
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", set_config=values)
    with pytest.deprecated_call():
        (response,) = admin.alter_configs([resource]).values()
    response.result(WAIT_S)
