"""BrokerRegistration: a broker's new incarnation gets an epoch; an unclean one leaves the ISR and the ELR.

The broker epoch is the offset at which the registration begins in the metadata log. A second process with the id of a
broker whose session lasts is refused (101 DUPLICATE_BROKER_REGISTRATION); so a broker that was killed waits until its
old session has ended. With ELR a broker that does not name its last epoch (`previous_broker_epoch`) has lost what was
not synced: it may not be elected for what it had (KIP-966). Source: Kafka 4.4 `ClusterControlManager.registerBroker`,
`ReplicationControlManager.handleBrokerShutdown`. KIP-631, KIP-858. Rule R16.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Final

from barnabas.coord.cluster.image import METADATA_VERSION_FEATURE, ClusterImage
from barnabas.coord.cluster.partitions.leader_changes import LeaderChanges
from barnabas.coord.cluster.partitions.partition_change import DIRECTORIES_SINCE
from barnabas.coord.cluster.topic_image import is_reserved_directory
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import BrokerRegistrationRequest
from barnabas.wire.messages.records.metadata_records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from barnabas.wire.schema import Message
from barnabas.wire.types import uuid_to_text

NEVER_REGISTERED: Final = -2
"""An epoch that no broker names as its last."""

Range = tuple[int, int]


def check_registration(
    image: ClusterImage, request: BrokerRegistrationRequest, *, cluster_id: str | None, has_session: bool
) -> None:
    """KafkaError when a broker may not register; `has_session`: its registered incarnation is alive.

    `cluster_id` None: any.
    """
    if cluster_id is not None and request.cluster_id != cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {cluster_id}, but got cluster ID {request.cluster_id}",
        )
    existing = image.brokers.get(request.broker_id)
    is_other = existing is not None and existing.incarnation_id != request.incarnation_id
    if is_other and has_session:
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted this should "
            "self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, "Controller does not support registering ZK brokers.")
    if image.metadata_version >= DIRECTORIES_SINCE:
        _check_directories(image, request)
    features = _features(request)
    if METADATA_VERSION_FEATURE not in features:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Request features do not contain 'metadata.version'")
    check_features(image, features)


def _check_directories(image: ClusterImage, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    if not directories:
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "No directories specified in request")
    if len(set(directories)) < len(directories):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Duplicate directory ID in request")
    if any(map(is_reserved_directory, directories)):
        raise KafkaError(ErrorCode.INVALID_REGISTRATION, "Reserved directory ID in request")
    for broker in image.brokers.values():
        shared = set(broker.directories).intersection(directories)
        if broker.id != request.broker_id and shared:
            raise KafkaError(
                ErrorCode.INVALID_REGISTRATION,
                f"Broker {broker.id} is already registered with directory {uuid_to_text(min(shared))}",
            )


def check_features(image: ClusterImage, supported: Mapping[str, Range]) -> None:
    """KafkaError(UNSUPPORTED_VERSION) unless a node works with every level that the cluster has now."""
    for name, level in image.finalized_features.items():
        low, high = supported.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level} of {name}. The "
                f"broker wants a version between {low} and {high}, inclusive.",
            )


def _features(request: BrokerRegistrationRequest) -> dict[str, Range]:
    return {
        feature.name: (feature.min_supported_version, feature.max_supported_version) for feature in request.features
    }


def registration_steps(
    changes: LeaderChanges, request: BrokerRegistrationRequest, next_offset: int
) -> Generator[None, None, tuple[list[Message], int]]:
    """(records, broker epoch) of a valid registration; the RegisterBrokerRecord is the last.

    The same incarnation keeps its epoch and state; a new one begins fenced, and leaves the ISRs of the one before.
    """
    existing = changes.image.brokers.get(request.broker_id)
    records: list[Message] = []
    if existing is not None and existing.incarnation_id == request.incarnation_id:
        record = _record(request, existing.epoch)
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
        cordoned = existing.cordoned_directories
        record.cordoned_log_dirs = None if cordoned is None else list(cordoned)
        return [record], existing.epoch
    last_epoch = NEVER_REGISTERED if existing is None else existing.epoch
    is_clean = not changes.elr_enabled or request.previous_broker_epoch == last_epoch
    if not is_clean or (existing is not None and not existing.fenced):  # a fenced one has left the ISRs already
        yield from changes.without(request.broker_id, records, unclean=not is_clean)
    records.append(_record(request, next_offset))
    return records, next_offset


def _record(request: BrokerRegistrationRequest, epoch: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=epoch,
        end_points=[
            BrokerEndpoint(
                name=listener.name, host=listener.host, port=listener.port, security_protocol=listener.security_protocol
            )
            for listener in request.listeners
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in _features(request).items()
        ],
        rack=request.rack,
        fenced=True,
        log_dirs=sorted(request.log_dirs),
    )
