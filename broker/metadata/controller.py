"""The controller inside a single node: requests become records of the metadata log, and their effects follow at once.

Every change goes one way: judged by `LocalController`, written and synced by `MetadataLog`, replayed into the
image, followed by partitions and configuration, answered. So whoever was answered finds what was asked for, and a
restart finds it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.broker.config.keys.general import BROKER_RACK, DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
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
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.server_config import UNUSED
from barnabas.broker.metadata.metadata_log import MetadataLog
from barnabas.coord.cluster.image import BROKER, GROUP, TOPIC, ClusterDelta, ClusterImage
from barnabas.coord.cluster.node_records import (
    SUPPORTED_FEATURES,
    allocate_producer_ids,
    farewell_records,
    leader_records,
    registration_records,
)
from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from barnabas.storage.log_config import SYNONYMS, TOPIC_KEYS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import BrokerEndpoint
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.coord.cluster.local_controller import LocalController, Outcome
    from barnabas.coord.cluster.topic_changes import TopicDefaults
    from barnabas.wire.messages.topics import CreatableTopic
    from barnabas.wire.schema import Message

R = TypeVar("R")

logger = logging.getLogger("kafka.server.Controller")

_TOPIC_SYNONYMS: Final = {name for synonyms in SYNONYMS.values() for name, _ in synonyms}
_WILDCARDS: Final = {"", "0.0.0.0", "::"}


class Controller:
    """Changes the cluster's metadata and makes the broker follow."""

    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES
    """Feature levels this broker can work with, lowest and highest."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._log = MetadataLog(broker)
        self._warned: set[tuple[int, str]] = set()
        self.on_config_change: list[Callable[[set[str]], None]] = []
        """Called with the names of broker configs that a request has changed, after they are in force."""

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now."""
        return self._log.image

    @cached_property
    def local(self) -> LocalController:
        """The judge of requests; made for the first one, since a start needs none of it."""
        from barnabas.broker.config.config_schema import CONFIG_SCHEMA
        from barnabas.coord.cluster.local_controller import LocalController

        broker = self._broker
        return LocalController(self.image, CONFIG_SCHEMA, broker.config, broker.node_id, broker.log_dirs.new_id)

    def open(self) -> None:
        """Read the metadata; a new log gets its first records, partitions without a leader get this node.

        After a crash every partition gets a new leader epoch.
        """
        self._log.open()
        broker = self._broker
        if self._log.is_new:
            self._log.write(self._log.bootstrap_records(), sync=False)
        else:
            crashed = not all(log_dir.had_clean_shutdown for log_dir in broker.log_dirs.dirs)
            self._log.write(leader_records(self.image, broker.node_id, after_crash=crashed), sync=False)
        self._take_over_configs()

    def register_broker(self, listeners: Sequence[Endpoint]) -> None:
        """Make this node known, with its bound addresses and its log directories. Syncs what `open` has written."""
        broker = self._broker
        advertised = broker.config.advertised_listeners
        endpoints = [advertised.get(listener.name, listener) for listener in listeners]
        records = registration_records(
            broker.node_id,
            incarnation_id=broker.log_dirs.new_id(),
            endpoints=[
                BrokerEndpoint(
                    name=endpoint.name,
                    host="localhost" if endpoint.host in _WILDCARDS else endpoint.host,
                    port=endpoint.port,
                )
                for endpoint in endpoints
            ],
            directories=[uuid_from_text(log_dir.directory_id) for log_dir in broker.log_dirs.dirs],
            rack=broker.config[BROKER_RACK],
            epoch=self._log.end_offset,
        )
        self._log.write(records)

    def close(self) -> int:
        """Fence this node, which stops serving; gives the epoch under which it was registered, -1 if it was not."""
        registered = self.image.brokers.get(self._broker.node_id)
        if registered is None:
            return -1
        try:
            self._log.write(farewell_records(self.image, registered))
        except (KafkaError, OSError) as error:
            logger.error("Cannot write to the metadata log that this broker stops: %s", error)
        return registered.epoch

    def commit(self, outcome: Outcome[R]) -> R:
        """Put an outcome in force and give its response; KafkaError when the metadata log cannot be written."""
        self._write(outcome.records)
        return outcome.response

    def _write(self, records: Sequence[Message]) -> None:
        if records:
            self._follow(self._log.write(records))

    def _follow(self, delta: ClusterDelta) -> None:
        self._broker.partitions.apply(self.image, delta)
        self._broker.coordinators.apply(delta)
        self._broker.transactions.apply(delta)
        self._broker.shares.apply(delta)
        for kind, name in delta.changed_configs:
            self._warn_unused(kind, name)
        if any(kind == BROKER for kind, _ in delta.changed_configs):
            changed = self._take_over_configs()
            if changed & _TOPIC_SYNONYMS:
                self._broker.partitions.update_configs(self.image)
            for listener in self.on_config_change:
                listener(changed)
        if any(kind in {BROKER, GROUP} for kind, _ in delta.changed_configs):
            self._broker.group_configs.apply(delta)

    def _take_over_configs(self) -> set[str]:
        """Put the dynamic configs of the image in force."""
        own = self.image.config(BROKER, str(self._broker.node_id))
        return self._broker.config.set_dynamic(own, self.image.config(BROKER, ""))

    def _warn_unused(self, kind: int, name: str) -> None:
        """Say once of every config that was set and does nothing here."""
        keys = TOPIC_KEYS if kind == TOPIC else BROKER_KEYS
        for config, value in self.image.config(kind, name).items():
            key = keys.get(config)
            if key is None or key.used or key.parse(value) == key.default:
                continue
            if (kind, config) not in self._warned:
                self._warned.add((kind, config))
                logger.warning("Config %s (set on %r) is %s", config, name, UNUSED)

    # What the broker itself asks for

    def topic_defaults(self) -> TopicDefaults:
        """What a topic gets that asks for nothing in particular."""
        from barnabas.coord.cluster.topic_changes import TopicDefaults

        config = self._broker.config
        return TopicDefaults(
            config[NUM_PARTITIONS], config[DEFAULT_REPLICATION_FACTOR], clamps_replicas=config.profile == "dev"
        )

    def auto_create_topic(self, name: str) -> None:
        """Create a topic because someone asked for it; one that is there already is fine. KafkaError says why not."""
        self.auto_create([name])
        if name not in self.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def auto_create_dead_letter_queue(self, name: str) -> None:
        """Create the topic for what a share group could not process (KIP-1191). KafkaError says why not."""
        from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

        configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        topic = CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        request = CreateTopicsRequest(topics=[topic])
        for result in self.commit(self.local.create_topics(request, self.topic_defaults())).topics:
            if result.error_code:
                raise KafkaError(ErrorCode(result.error_code), result.error_message)

    def auto_create(self, names: Iterable[str]) -> None:
        """Create the topics that are missing, together. KafkaError of the first that cannot be; the others are made."""
        from barnabas.wire.messages.topics import CreateTopicsRequest

        missing = [self._automatic_topic(name) for name in dict.fromkeys(names) if name not in self.image.topics]
        if not missing:
            return
        request = CreateTopicsRequest(topics=missing)
        response = self.commit(self.local.create_topics(request, self.topic_defaults()))
        for result in response.topics:
            if result.error_code:
                raise KafkaError(ErrorCode(result.error_code), result.error_message)

    def _automatic_topic(self, name: str) -> CreatableTopic:
        """What a topic looks like that is created without anyone saying how."""
        from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig

        config = self._broker.config
        if name == GROUP_METADATA_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config[OFFSETS_TOPIC_SEGMENT_BYTES]),
            }
            return CreatableTopic(
                name=name,
                num_partitions=config[OFFSETS_TOPIC_NUM_PARTITIONS],
                replication_factor=config[OFFSETS_TOPIC_REPLICATION_FACTOR],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
        if name == TRANSACTION_STATE_TOPIC:
            configs = {
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config[TRANSACTION_STATE_LOG_MIN_ISR]),
                "segment.bytes": str(config[TRANSACTION_STATE_LOG_SEGMENT_BYTES]),
                "unclean.leader.election.enable": "false",
            }
            return CreatableTopic(
                name=name,
                num_partitions=config[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
                replication_factor=config[TRANSACTION_STATE_LOG_REPLICATION_FACTOR],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
        if name == SHARE_GROUP_STATE_TOPIC:
            configs = {
                "cleanup.policy": "delete",  # the coordinator itself deletes what is not needed any more
                "compression.type": "producer",
                "min.insync.replicas": str(config[SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR]),
                "retention.ms": "-1",
                "segment.bytes": str(config[SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES]),
            }
            return CreatableTopic(
                name=name,
                num_partitions=config[SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS],
                replication_factor=config[SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR],
                configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
        return CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)

    def allocate_producer_ids(self) -> tuple[int, int]:
        """A block of producer ids that nobody ever had: the first, and how many."""
        records, block = allocate_producer_ids(self.image, self._broker.node_id)
        self._write(records)
        return block.start, len(block)
