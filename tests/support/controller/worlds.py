"""A cluster in memory: an image, its controller, and the metadata log that the controller would write."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import TypeVar

from barnabas.coord.cluster.changes.config_schema import ConfigSchema
from barnabas.coord.cluster.changes.topic_changes import TopicDefaults
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.local_controller import LocalController, Outcome
from barnabas.coord.cluster.metadata_log.metadata_batches import (
    build_metadata_batch,
    leader_change_batch,
    replay_batches,
)
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.coord.cluster.node_records import bootstrap_records, registration_records
from barnabas.storage.log_config import check_topic_configs
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS
from barnabas.wire import configdef
from barnabas.wire.configdef import ConfigKey
from barnabas.wire.messages.records.metadata_records import BrokerEndpoint
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.wire.schema import Message
from tests.support.steps import AtOnce

R = TypeVar("R")

_DYNAMIC = configdef.CLUSTER_WIDE
_LOW = configdef.LOW
BROKER_KEYS = {
    key.name: key
    for key in (
        configdef.integer("num.partitions", 1, "[1,...]", _LOW, "."),
        configdef.integer("max.connections", 100, "[0,...]", _LOW, ".", dynamic=_DYNAMIC),
        configdef.list_of("log.cleanup.policy", ("delete",), "[compact, delete]", _LOW, ".", dynamic=_DYNAMIC),
        configdef.list_of("listeners", ("A://:1",), "", _LOW, ".", dynamic=configdef.PER_BROKER),
        configdef.password("ssl.key.password", _LOW, ".", dynamic=configdef.PER_BROKER),
        configdef.integer("log.segment.bytes", 1 << 30, "[1048576,...]", _LOW, ".", dynamic=_DYNAMIC),
        configdef.long("log.retention.ms", None, "", _LOW, ".", dynamic=_DYNAMIC),
        configdef.integer("log.retention.hours", 168, "", _LOW, "."),
        configdef.integer("min.insync.replicas", 1, "[1,...]", _LOW, ".", dynamic=_DYNAMIC),
        configdef.boolean("unclean.leader.election.enable", False, _LOW, ".", dynamic=_DYNAMIC),
    )
}


class Settings:
    """A broker's settings: static ones and Kafka's defaults."""

    def __init__(self, static: Mapping[str, str] | None = None, topics: Mapping[str, str] | None = None) -> None:
        self.static = dict(static or {})
        self.topics = dict(topics or {})

    def text_layers(self, name: str) -> list[tuple[int, str]]:
        layers = [(4, self.static[name])] if name in self.static else []
        key: ConfigKey[object] | None = BROKER_KEYS.get(name)
        default = None if key is None else key.format(key.default)  # type: ignore[arg-type]
        return layers if default is None else [*layers, (5, default)]

    def topic_defaults(self) -> Mapping[str, str]:
        return self.topics


class ControllerWorld:
    """One node, its image and its metadata log as bytes."""

    def __init__(self, brokers: int = 1, settings: Settings | None = None) -> None:
        self.image = ClusterImage()
        self.log = bytearray(leader_change_batch(leader_id=1, epoch=1, now_ms=0))
        ids = count(1)
        schema = ConfigSchema(
            topic_keys=TOPIC_KEYS,
            broker_keys=BROKER_KEYS,
            group_keys={
                "consumer.session.timeout.ms": configdef.integer(
                    "consumer.session.timeout.ms", 45000, "[1,...]", configdef.MEDIUM, "."
                )
            },
            client_metrics_keys={"interval.ms": configdef.integer("interval.ms", 300000, "", configdef.MEDIUM, ".")},
            topic_synonyms=SYNONYMS,
            check_topic=check_topic_configs,
        )
        self.controller = AtOnce(
            LocalController(self.image, schema, settings or Settings(), 1, lambda: next(ids).to_bytes(16, "big"))
        )
        self.offset = 1
        self.apply(bootstrap_records())
        for broker in range(1, brokers + 1):
            endpoints = [BrokerEndpoint(name="PLAINTEXT", host="localhost", port=9092)]
            records = registration_records(
                broker,
                incarnation_id=bytes(15) + bytes([broker]),
                endpoints=endpoints,
                directories=[bytes([broker]) * 16],
                rack=None,
                epoch=self.offset,
            )
            self.apply(records)

    def apply(self, records: list[Message]) -> ClusterDelta:
        """Write records to the log and replay them."""
        delta = ClusterDelta()
        if records:
            self.log += build_metadata_batch(records, epoch=1, now_ms=0, base_offset=self.offset)
            self.offset += len(records)
            for record in records:
                replay_record(self.image, record, delta)
        self.image.offset = self.offset - 1
        self.image.epoch = 1
        return delta

    def commit(self, outcome: Outcome[R]) -> R:
        """Write and replay the records of an outcome; its response."""
        self.apply(outcome.records)
        return outcome.response

    def restarted(self) -> ClusterImage:
        """The image that a new process builds from the log."""
        image = ClusterImage()
        replay_batches(bytes(self.log), image, ClusterDelta())
        return image

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        *,
        validate_only: bool = False,
        **configs: str,
    ) -> CreatableTopicResult:
        """Create one topic; configs have `_` for dots."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
        )
        return self.create_all(topic, validate_only=validate_only)[0]

    def create_all(self, *topics: CreatableTopic, validate_only: bool = False) -> list[CreatableTopicResult]:
        """One CreateTopics request."""
        request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
        return self.commit(self.controller.create_topics(request, TopicDefaults(4, 1))).topics

    def delete(self, *states: DeleteTopicState, names: tuple[str, ...] = ()) -> list[DeletableTopicResult]:
        """One DeleteTopics request."""
        request = DeleteTopicsRequest(topics=list(states), topic_names=list(names))
        return self.commit(self.controller.delete_topics(request)).responses


def same(image: ClusterImage, other: ClusterImage) -> bool:
    """Whether two images are equal."""
    return vars(image) == vars(other)
