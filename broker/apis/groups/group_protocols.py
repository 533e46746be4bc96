"""Which group protocols are enabled: the cluster's feature levels and `group.coordinator.rebalance.protocols` decide.

A data directory that was formatted before a protocol existed has no level of its feature; UpdateFeatures sets one.
Source: Kafka 4.4 `KafkaApis.isConsumerGroupProtocolEnabled` and its siblings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.config.keys.groups import GROUP_COORDINATOR_REBALANCE_PROTOCOLS
from barnabas.coord.cluster.node_records import GROUP_VERSION_FEATURE, SHARE_VERSION_FEATURE, STREAMS_VERSION_FEATURE
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker


def needs_consumer_groups(broker: Broker) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION unless consumer groups are enabled (KIP-848)."""
    _check(broker, GROUP_VERSION_FEATURE, "consumer")


def needs_streams_groups(broker: Broker) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION unless streams groups are enabled (KIP-1071)."""
    _check(broker, STREAMS_VERSION_FEATURE, "streams")


def needs_share_groups(broker: Broker) -> None:
    """Raise KafkaError UNSUPPORTED_VERSION unless share groups are enabled (KIP-932)."""
    _check(broker, SHARE_VERSION_FEATURE, None)


def _check(broker: Broker, feature: str, protocol: str | None) -> None:
    if broker.image.features.get(feature, 0) < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"The feature {feature} is not enabled: set its level with UpdateFeatures."
        )
    if protocol is not None and protocol not in broker.config[GROUP_COORDINATOR_REBALANCE_PROTOCOLS]:
        key = GROUP_COORDINATOR_REBALANCE_PROTOCOLS.name
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"The protocol {protocol} is not in {key}.")
