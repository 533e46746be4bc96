"""The throttles of a reassignment: rates of brokers, and replicas of topics that they are for (KIP-73).

The rate is for what a broker sends as a leader and what it receives as a follower. Throttled are, of the leaders, the
replicas from which partitions are copied, of the followers those that are new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.admin.cluster import describe_cluster
from barnabas.client.admin.configs import ConfigChange, alter_config
from barnabas.client.admin.reassignments import Partition
from barnabas.client.cluster import Cluster

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
SET, DELETE = 0, 1


def set_throttles(
    cluster: Cluster,
    current: Mapping[Partition, Sequence[int]],
    plan: Mapping[Partition, Sequence[int]],
    bytes_per_second: int,
) -> None:
    """Throttle what moves between `current` and `plan`."""
    replicas: dict[str, dict[str, list[str]]] = {}
    brokers: set[int] = set()
    for (topic, index), planned in plan.items():
        old = current[topic, index]
        new = [broker for broker in planned if broker not in old]
        if not new:
            continue
        brokers.update(old, new)
        keys = replicas.setdefault(topic, {LEADERS: [], FOLLOWERS: []})
        keys[LEADERS] += [f"{index}:{broker}" for broker in old]
        keys[FOLLOWERS] += [f"{index}:{broker}" for broker in new]
    for topic, keys in replicas.items():
        _alter(cluster, "topic", topic, {key: ",".join(listed) for key, listed in keys.items()})
    for broker in sorted(brokers):
        _alter(cluster, "broker", str(broker), dict.fromkeys(RATES, str(bytes_per_second)))


def clear_throttles(cluster: Cluster, topics: Iterable[str]) -> list[int]:
    """Remove the throttles of all brokers and of these topics; returns the brokers."""
    brokers = [broker.broker_id for broker in describe_cluster(cluster).brokers]
    for broker in brokers:
        _alter(cluster, "broker", str(broker), dict.fromkeys(RATES))
    for topic in topics:
        _alter(cluster, "topic", topic, dict.fromkeys((LEADERS, FOLLOWERS)))
    return brokers


def _alter(cluster: Cluster, kind: str, name: str, values: Mapping[str, str | None]) -> None:
    changes = [ConfigChange(key, DELETE if value is None else SET, value) for key, value in values.items()]
    alter_config(cluster, kind, name, changes)
