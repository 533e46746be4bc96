"""Every broker config key of Kafka 4.4, declared once, by area; `BROKER_KEYS` has all of them by name.

`used=True` marks the keys that Barnabas uses. The others are declared so that they are not reported as unknown, and a
warning is logged for each one that is set. One test compares the declarations with Kafka's own table, another one the
`used` marks with the code.
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
    remote,
    replication,
    security,
    share_and_streams,
    transactions,
)
from barnabas.wire.configdef import ConfigKey


def _declared_in(*modules: ModuleType) -> dict[str, ConfigKey[Any]]:
    return {key.name: key for module in modules for key in vars(module).values() if isinstance(key, ConfigKey)}


KAFKA_KEYS: Final = _declared_in(
    general, network, log, groups, share_and_streams, transactions, replication, controller, remote, security
)
"""The keys of Kafka's own KafkaConfig."""

DYNAMIC_ONLY_KEYS: Final = _declared_in(dynamic_only)
"""Kafka's keys that can only be set dynamically, with AlterConfigs."""

AUTHORIZER_KEYS: Final = _declared_in(authorizer)
"""The keys of Kafka's StandardAuthorizer."""

OWN_KEYS: Final = _declared_in(own)
"""Barnabas' own keys, all under `barnabas.`."""

BROKER_KEYS: Final[dict[str, ConfigKey[Any]]] = {**KAFKA_KEYS, **AUTHORIZER_KEYS, **OWN_KEYS}
"""Every key that a file, the environment or the command line may set."""
