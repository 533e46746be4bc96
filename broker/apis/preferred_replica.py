"""Which replica a consumer is asked to read from (KIP-392, R21).

`replica.selector.class` names Kafka's class. RackAwareReplicaSelector: a replica of the client's rack, the leader if it
is one of them, else the one that has most. Any other class keeps consumers at the leader; the start warns of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.replication import REPLICA_SELECTOR_CLASS

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def preferred_replica(broker: Broker, partition: Partition, fetch_offset: int, rack_id: str) -> int | None:
    """The follower that a client in this rack should read from; None for this leader."""
    leading = partition.leading
    if leading is None or broker.config[REPLICA_SELECTOR_CLASS] != RACK_AWARE:
        return None
    brokers = broker.image.brokers
    own = brokers.get(broker.node_id)
    if own is not None and own.rack == rack_id:
        return None
    best = None
    for follower in leading.state.followers.values():
        known = brokers.get(follower.broker_id)
        if (
            known is not None
            and not known.fenced
            and known.rack == rack_id
            and follower.broker_id in partition.isr
            and follower.log_start_offset <= fetch_offset <= follower.log_end_offset
            and (best is None or follower.log_end_offset > best.log_end_offset)
        ):
            best = follower
    return None if best is None else best.broker_id
