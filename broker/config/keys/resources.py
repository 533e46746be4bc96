"""Config keys of groups (KIP-848, KIP-932, KIP-1071) and of client metrics subscriptions (KIP-714).

If there is a broker key `group.<name>`, it is the default of the group key; the bounds are in
`broker.config.group_limits.LIMITS`.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.wire.configdef import MEDIUM, ConfigKey, boolean, integer, list_of, string, without_effect

_INHERITED: Final = {
    "consumer.assignment.interval.ms": "Minimum time between two assignments of the group.",
    "consumer.heartbeat.interval.ms": "Heartbeat interval sent to the group's members.",
    "consumer.session.timeout.ms": "Time without heartbeat after which a member is removed.",
    "share.assignment.interval.ms": "Minimum time between two assignments of the share group.",
    "share.delivery.count.limit": "How often a record is delivered at most.",
    "share.heartbeat.interval.ms": "Heartbeat interval sent to the share group's members.",
    "share.partition.max.record.locks": "Maximum number of records of one partition that the group holds locked.",
    "share.record.lock.duration.ms": "Time a record stays locked for the member that acquired it.",
    "share.session.timeout.ms": "Time without heartbeat after which a member of the share group is removed.",
    "streams.assignment.interval.ms": "Minimum time between two assignments of the streams group.",
    "streams.heartbeat.interval.ms": "Heartbeat interval sent to the streams group's members.",
    "streams.initial.rebalance.delay.ms": "Time the empty group waits for more members before its first rebalance.",
    "streams.rack.aware.assignment.tags": "Client tags over which standby replicas are spread.",
    "streams.num.standby.replicas": "Standby replicas of each task.",
    "streams.session.timeout.ms": "Time without heartbeat after which a member of the streams group is removed.",
}

(STREAMS_ASSIGNOR_NAME,) = without_effect(
    string("streams.assignor.name", "sticky", "", MEDIUM, "Assignor of the streams group.")
)
SHARE_AUTO_OFFSET_RESET = string(
    "share.auto.offset.reset",
    "latest",
    "",
    MEDIUM,
    "Start offset of a share group without one: latest, earliest or by_duration:PnDTnHnMn.nS.",
)
SHARE_ISOLATION_LEVEL = string(
    "share.isolation.level",
    "read_uncommitted",
    "[read_committed, read_uncommitted]",
    MEDIUM,
    "Whether the share group reads records of transactions that are not committed.",
)
SHARE_RENEW_ACKNOWLEDGE_ENABLE = boolean(
    "share.renew.acknowledge.enable", True, MEDIUM, "Whether members may renew the lock of a record."
)
ERRORS_DEADLETTERQUEUE_TOPIC_NAME = string(
    "errors.deadletterqueue.topic.name", "", "", MEDIUM, "Topic for records that could not be delivered."
)
ERRORS_DEADLETTERQUEUE_COPY_RECORD_ENABLE = boolean(
    "errors.deadletterqueue.copy.record.enable",
    False,
    MEDIUM,
    "Whether undeliverable records are copied whole, with key and value.",
)

CLIENT_METRICS_KEYS: Final[dict[str, ConfigKey[Any]]] = {
    key.name: key
    for key in (
        list_of("metrics", (), "", MEDIUM, "Prefixes of the metrics that a subscription requests; * is all."),
        integer("interval.ms", 300_000, "", MEDIUM, "Time between two pushes of a client."),
        list_of("match", (), "", MEDIUM, "Which clients a subscription is for, as name=pattern pairs."),
    )
}
"""Keys of client metrics subscriptions."""


def _inherited(name: str, doc: str) -> ConfigKey[Any]:
    broker_key = BROKER_KEYS[f"group.{name}"]
    low, comma, _ = broker_key.valid.partition(",")
    valid = f"{low},...]" if comma else ""  # the upper bound is a config of the broker
    return ConfigKey(
        broker_key.type, name, broker_key.default, valid, MEDIUM, broker_key.dynamic, doc, used=broker_key.used
    )


GROUP_KEYS: Final[dict[str, ConfigKey[Any]]] = {
    **{name: _inherited(name, doc) for name, doc in _INHERITED.items()},
    **{key.name: key for key in list(globals().values()) if isinstance(key, ConfigKey)},
}
"""Keys of groups, of all three kinds."""
