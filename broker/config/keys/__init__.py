"""Every broker config key of Kafka 4.4, declared once, by area; `BROKER_KEYS` has all of them by name.

Each area's module has the keys that Barnabas uses; `without_effect` has the others, so that they are not reported as
unknown, and a warning is logged for each one that is set. One test compares the declarations with Kafka's own table,
another one compares the two kinds with the code.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from barnabas.broker.config.keys import (
    authorizer,
    controller,
    dynamic_only,
    general,
    groups,
    log,
    network,
    own,
    replication,
    security,
    share_and_streams,
    transactions,
)
from barnabas.broker.config.keys.without_effect import WITHOUT_EFFECT
from barnabas.wire.configdef import ConfigKey


def _declared_in(*modules: ModuleType) -> dict[str, ConfigKey[Any]]:
    return {key.name: key for module in modules for key in vars(module).values() if isinstance(key, ConfigKey)}


def _without_effect(*, dynamic_only: bool) -> dict[str, ConfigKey[Any]]:
    return {
        key.name: key
        for area, keys in WITHOUT_EFFECT.items()
        if (area == "dynamic_only") is dynamic_only
        for key in keys
    }


KAFKA_KEYS: Final = {
    **_declared_in(general, network, log, groups, share_and_streams, transactions, replication, controller, security),
    **_without_effect(dynamic_only=False),
}
"""The keys of Kafka's own KafkaConfig."""

DYNAMIC_ONLY_KEYS: Final = _declared_in(dynamic_only) | _without_effect(dynamic_only=True)
"""Kafka's keys that can only be set dynamically, with AlterConfigs."""

AUTHORIZER_KEYS: Final = _declared_in(authorizer)
"""The keys of Kafka's StandardAuthorizer."""

OWN_KEYS: Final = _declared_in(own)
"""Barnabas' own keys, all under `barnabas.`."""

BROKER_KEYS: Final[dict[str, ConfigKey[Any]]] = {**KAFKA_KEYS, **AUTHORIZER_KEYS, **OWN_KEYS}
"""Every key that a file, the environment or the command line may set."""
