"""Profiles: defaults that depend on what the broker is for, in one table each.

`dev` makes sense of a single node; `kafka` keeps Kafka's defaults to the letter. A profile's values are
weaker than everything that a user sets and stronger than Kafka's defaults. `CLAMPED_IN_DEV` are the numbers
that cannot exceed the brokers there are: under `dev` even a value that was set is cut down, with a warning,
so that a configuration written for three brokers works on one. So is the replication factor that CreateTopics asks for.
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
"""What a broker on a developer's machine starts from."""

PROFILES: Final[dict[str, dict[str, str]]] = {"dev": DEV, "kafka": {}}
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
"""Numbers of replicas, never more than brokers."""


def profile_defaults(name: str) -> dict[str, str]:
    """The defaults of a profile; ConfigError when there is none of this name."""
    if name not in PROFILES:
        raise ConfigError(f"There is no profile {name}: take one of {', '.join(PROFILES)}")
    return PROFILES[name]
