"""The creation requests of topics that the broker creates by itself: internal topics have settings of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.keys.groups import (
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)
from barnabas.broker.config.keys.share_and_streams import (
    SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR,
    SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS,
    SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR,
    SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES,
)
from barnabas.broker.config.keys.transactions import (
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
)
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.config.server_config import ServerConfig

_BROKER_DEFAULT = -1


def automatic_topic(name: str, config: ServerConfig) -> CreatableTopic:
    """A topic that a client has used or that a coordinator needs."""
    if name == GROUP_METADATA_TOPIC:
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config[OFFSETS_TOPIC_SEGMENT_BYTES]),
        }
        return _topic(name, config[OFFSETS_TOPIC_NUM_PARTITIONS], config[OFFSETS_TOPIC_REPLICATION_FACTOR], configs)
    if name == TRANSACTION_STATE_TOPIC:
        configs = {
            "cleanup.policy": "compact",
            "min.insync.replicas": str(config[TRANSACTION_STATE_LOG_MIN_ISR]),
            "segment.bytes": str(config[TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
            "unclean.leader.election.enable": "false",
        }
        partitions, replicas = TRANSACTION_STATE_LOG_NUM_PARTITIONS, TRANSACTION_STATE_LOG_REPLICATION_FACTOR
        return _topic(name, config[partitions], config[replicas], configs)
    if name == SHARE_GROUP_STATE_TOPIC:
        configs = {
            "cleanup.policy": "delete",  # the coordinator itself deletes records that are no longer needed
            "compression.type": "producer",
            "min.insync.replicas": str(config[SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR]),
            "retention.ms": "-1",
            "segment.bytes": str(config[SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES]),
        }
        partitions = SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS
        replicas = SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR
        return _topic(name, config[partitions], config[replicas], configs)
    return _topic(name, _BROKER_DEFAULT, _BROKER_DEFAULT, {})


def dead_letter_queue(name: str) -> CreatableTopic:
    """The topic for records that a share group could not process (KIP-1191)."""
    configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
    return _topic(name, _BROKER_DEFAULT, _BROKER_DEFAULT, configs)


def _topic(name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
