"""Profiles: defaults that depend on the purpose of the broker.

`dev` is for a single node; `kafka` keeps Kafka's defaults. A profile overrides Kafka's defaults, and every setting of
the user overrides the profile. Under `dev`, the keys in `CLAMPED_IN_DEV` and the replication factor of CreateTopics are
reduced to the number of brokers, with a warning, so that a configuration for three brokers works on one. A broker that
joins the controllers of a cluster (`process.roles=broker`) has Kafka's defaults whatever the profile (`load`).
"""

from __future__ import annotations

from typing import Final

from barnabas.wire.configdef import ConfigError

DEV: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
"""Defaults of a single broker on a developer's machine."""

CONTAINER: Final = {
    "listeners": "PLAINTEXT://0.0.0.0:9092,INTERNAL://0.0.0.0:19092",
    "advertised.listeners": "PLAINTEXT://localhost:9092",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
}
"""Defaults of `serve --in-container`, if `listeners` is not set: a listener for the host, which publishes its port, and
one for other containers, to which the address that they have connected to is advertised. The listener for the host has
the name that it has in the apache/kafka image, so that KAFKA_ADVERTISED_LISTENERS of a compose file works."""

KAFKA: Final = "kafka"
PROFILES: Final[dict[str, dict[str, str]]] = {"dev": DEV, KAFKA: {}}
"""The profiles by name."""

CLAMPED_IN_DEV: Final = frozenset(
    {
        "default.replication.factor",
        "min.insync.replicas",
        "offsets.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    }
)
"""Numbers of replicas, which cannot exceed the number of brokers."""


def profile_defaults(name: str) -> dict[str, str]:
    """The defaults of a profile. ConfigError for an unknown profile."""
    if name not in PROFILES:
        raise ConfigError(f"Unknown profile {name}. Valid profiles are {', '.join(PROFILES)}")
    return PROFILES[name]
