"""A metadata image of Barnabas as JSON, with every field, in `ImageForm.java`'s form of Kafka's MetadataImage."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.quorum import Quorum
from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage
from barnabas.wire.messages.records import metadata_records as m

Form = dict[str, Any]


def image_form(image: ClusterImage) -> Form:
    """The image; records of an open metadata transaction are no part of it."""
    return {
        "features": dict(image.features),
        "brokers": {_key(key, broker.id): _broker(broker) for key, broker in image.brokers.items()},
        "controllers": {
            _key(key, controller.controller_id): _controller(controller)
            for key, controller in image.controllers.items()
        },
        "topics": {name: _topic(topic) for name, topic in image.topics.items()},
        "topic_ids": {key.hex(): topic.name for key, topic in image.topics_by_id.items()},
        "configs": {f"{kind}:{name}": dict(configs) for (kind, name), configs in image.configs.items()},
        "quotas": {_entity(entity): _bits(values) for entity, values in image.quotas.items()},
        "next_producer_id": image.next_producer_id,
        "acls": {key.hex(): _acl(acl) for key, acl in image.acls.items()},
        "scram": {f"{mechanism}:{user}": _scram(record) for (user, mechanism), record in image.scram.items()},
        "tokens": {key: _token(token) for key, token in image.tokens.items()},
        "kraft_version": image.quorum.kraft_version,
        "voters": _voters(image.quorum),
    }


def _key(key: int, id_of_value: int) -> str:
    return str(key) if key == id_of_value else f"{key} is {id_of_value}"


def _hexes(ids: Iterable[bytes]) -> list[str]:
    return [id_.hex() for id_ in ids]


def _broker(broker: BrokerImage) -> Form:
    cordoned = broker.cordoned_directories
    return {
        "epoch": broker.epoch,
        "incarnation_id": broker.incarnation_id.hex(),
        "listeners": _listeners(broker.endpoints),
        "features": _ranges(broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "is_migrating_zk_broker": getattr(broker, "is_migrating_zk_broker", False),
        "directories": _hexes(broker.directories),
        "cordoned_directories": None if cordoned is None else _hexes(cordoned),
    }


def _controller(record: m.RegisterControllerRecord) -> Form:
    return {
        "incarnation_id": record.incarnation_id.hex(),
        "zk_migration_ready": record.zk_migration_ready,
        "listeners": _listeners(record.end_points),
        "features": _ranges(record.features),
    }


def _listeners(endpoints: Iterable[m.BrokerEndpoint | m.ControllerEndpoint]) -> Form:
    return {endpoint.name: [endpoint.host, endpoint.port, endpoint.security_protocol] for endpoint in endpoints}


def _ranges(features: Iterable[m.BrokerFeature | m.ControllerFeature]) -> Form:
    return {feature.name: [feature.min_supported_version, feature.max_supported_version] for feature in features}


def _topic(topic: TopicImage) -> Form:
    partitions = {str(index): _partition(partition) for index, partition in topic.partitions.items()}
    return {"name": topic.name, "id": topic.topic_id.hex(), "partitions": partitions}


def _partition(partition: PartitionImage) -> Form:
    fields = partition._asdict()
    fields["directories"] = _hexes(partition.directories)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _entity(entity: Iterable[tuple[str, str | None]]) -> str:
    return json.dumps(dict(entity), separators=(",", ":"), ensure_ascii=False)


def _bits(values: Mapping[str, float]) -> dict[str, int]:
    """The bits of each value: NaN is equal to itself so, and -0.0 is not 0.0."""
    return {name: struct.unpack(">q", struct.pack(">d", value))[0] for name, value in values.items()}


def _acl(record: m.AccessControlEntryRecord) -> list[Any]:
    return [
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    ]


def _scram(record: m.UserScramCredentialRecord) -> list[Any]:
    secrets = (record.salt, record.stored_key, record.server_key)
    return [*(bytes(secret).hex() for secret in secrets), record.iterations]


def _token(record: m.DelegationTokenRecord) -> Form:
    return {
        "token_id": record.token_id,
        "owner": record.owner,
        "requester": record.requester,
        "renewers": list(record.renewers),
        "issue_timestamp": record.issue_timestamp,
        "max_timestamp": record.max_timestamp,
        "expiration_timestamp": record.expiration_timestamp,
    }


def _voters(quorum: Quorum) -> Form | None:
    if quorum.voters is None:
        return None
    return {
        str(voter.voter_id): {
            "directory_id": voter.voter_directory_id.hex(),
            "endpoints": {endpoint.name: [endpoint.host, endpoint.port] for endpoint in voter.endpoints},
            "kraft_version": [
                voter.k_raft_version_feature.min_supported_version,
                voter.k_raft_version_feature.max_supported_version,
            ],
        }
        for voter in quorum.voters.voters
    }
