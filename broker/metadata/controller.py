"""The controller of a single-node cluster: requests become records of the metadata log, which the broker then follows.

Every change takes the same steps: `LocalController` validates the request, `MetadataLog` writes, syncs and replays the
records, the subscribers (partitions, coordinators, configuration) apply the change, and the request is answered. So a
client that has its answer finds the change in effect, also after a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.config.keys import BROKER_KEYS
from barnabas.broker.config.keys.general import BROKER_RACK, DEFAULT_REPLICATION_FACTOR, NUM_PARTITIONS
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.server_config import UNUSED
from barnabas.broker.guarded import call_guarded
from barnabas.broker.metadata.metadata_log import MetadataLog
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.node_records import (
    SUPPORTED_FEATURES,
    allocate_producer_ids,
    election_records,
    registration_records,
    shutdown_records,
)
from barnabas.coord.cluster.resources import BROKER, GROUP, TOPIC
from barnabas.storage.topic_keys import TOPIC_KEYS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import BrokerEndpoint
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.loop import Loop
    from barnabas.coord.cluster.local_controller import LocalController, Outcome
    from barnabas.coord.cluster.topic_changes import TopicDefaults
    from barnabas.storage.log_dirs import LogDirs
    from barnabas.wire.messages.topics import CreatableTopic
    from barnabas.wire.schema import Message

R = TypeVar("R")

logger = logging.getLogger("kafka.server.Controller")

_WILDCARDS: Final = {"", "0.0.0.0", "::"}


class Controller:
    """Changes the cluster's metadata and has the broker apply the changes."""

    supported_features: Mapping[str, tuple[int, int]] = SUPPORTED_FEATURES
    """Feature levels this broker can work with, lowest and highest."""

    def __init__(self, loop: Loop, config: ServerConfig, log_dirs: LogDirs, failures: LogDirFailures) -> None:
        self._config = config
        self._log_dirs = log_dirs
        self._log = MetadataLog(loop, config, log_dirs, failures)
        self._warned: set[tuple[int, str]] = set()
        self.on_change: list[Callable[[ClusterDelta], None]] = []
        """Called in order with every change of the image, before the request that caused it is answered."""
        self.on_config_change: list[Callable[[set[str]], None]] = []
        """Called with the names of broker configs that a request has changed, after they are effective."""
        self.on_group_config_change: list[Callable[[ClusterDelta], None]] = []
        """Called when configs of groups or of the broker have changed, after they are effective."""

    @property
    def image(self) -> ClusterImage:
        """The cluster's metadata as of now."""
        return self._log.image

    @cached_property
    def local(self) -> LocalController:
        """Validates requests against the image; imported for the first one, since a start does not need it."""
        from barnabas.broker.config.config_schema import CONFIG_SCHEMA
        from barnabas.coord.cluster.local_controller import LocalController

        config = self._config
        return LocalController(self.image, CONFIG_SCHEMA, config, config.node_id, self._log_dirs.new_id)

    def open(self) -> None:
        """Read the metadata; a new log gets its first records, partitions without a leader get this node.

        After a crash every partition gets a new leader epoch.
        """
        self._log.open()
        if self._log.is_new:
            self._log.write(self._log.bootstrap_records(), sync=False)
        else:
            crashed = not all(log_dir.had_clean_shutdown for log_dir in self._log_dirs.dirs)
            self._log.write(election_records(self.image, self._config.node_id, after_crash=crashed), sync=False)
        self._apply_dynamic_configs()

    def register_broker(self, listeners: Sequence[Endpoint]) -> None:
        """Register this node with its bound addresses and its log directories. Syncs what `open` has written."""
        advertised = self._config.advertised_listeners
        endpoints = [advertised.get(listener.name, listener) for listener in listeners]
        records = registration_records(
            self._config.node_id,
            incarnation_id=self._log_dirs.new_id(),
            endpoints=[
                BrokerEndpoint(
                    name=endpoint.name,
                    host="localhost" if endpoint.host in _WILDCARDS else endpoint.host,
                    port=endpoint.port,
                )
                for endpoint in endpoints
            ],
            directories=[uuid_from_text(log_dir.directory_id) for log_dir in self._log_dirs.dirs],
            rack=self._config[BROKER_RACK],
            epoch=self._log.end_offset,
        )
        self._log.write(records)

    def close(self) -> int:
        """Fence this node, which stops serving; returns the broker epoch of its registration, -1 if there is none."""
        registered = self.image.brokers.get(self._config.node_id)
        if registered is None:
            return -1
        try:
            self._log.write(shutdown_records(self.image, registered))
        except (KafkaError, OSError) as error:
            logger.error("Cannot write the shutdown of this broker to the metadata log: %s", error)
        return registered.epoch

    def commit(self, outcome: Outcome[R]) -> R:
        """Write and apply an outcome's records; returns its response. KafkaError when the log cannot be written."""
        self._write(outcome.records)
        return outcome.response

    def _write(self, records: Sequence[Message]) -> None:
        if records:
            self._apply(self._log.write(records))

    def _apply(self, delta: ClusterDelta) -> None:
        for subscriber in self.on_change:
            call_guarded("Applying a change of the metadata", subscriber, delta)
        for kind, name in delta.changed_configs:
            self._warn_unused(kind, name)
        if any(kind == BROKER for kind, _ in delta.changed_configs):
            changed = self._apply_dynamic_configs()
            for listener in self.on_config_change:
                call_guarded("Applying changed configs of the broker", listener, changed)
        if any(kind in {BROKER, GROUP} for kind, _ in delta.changed_configs):
            for follower in self.on_group_config_change:
                call_guarded("Applying changed configs of groups", follower, delta)

    def _apply_dynamic_configs(self) -> set[str]:
        """Make the dynamic configs of the image effective; the names of those whose value has changed."""
        own = self.image.config(BROKER, str(self._config.node_id))
        return self._config.set_dynamic(own, self.image.config(BROKER, ""))

    def _warn_unused(self, kind: int, name: str) -> None:
        """Warn once about every config that was set and is not acted on."""
        keys = TOPIC_KEYS if kind == TOPIC else BROKER_KEYS
        for config, value in self.image.config(kind, name).items():
            key = keys.get(config)
            if key is None or key.used or key.parse(value) == key.default:
                continue
            if (kind, config) not in self._warned:
                self._warned.add((kind, config))
                logger.warning("Config %s (set on %r) is %s", config, name, UNUSED)

    # What the broker itself requests

    def topic_defaults(self) -> TopicDefaults:
        """The defaults for topics whose creation leaves partitions or replicas to the broker."""
        from barnabas.coord.cluster.topic_changes import TopicDefaults

        config = self._config
        return TopicDefaults(
            config[NUM_PARTITIONS], config[DEFAULT_REPLICATION_FACTOR], clamps_replicas=config.profile == "dev"
        )

    def auto_create_topic(self, name: str) -> None:
        """Create a topic that a client requested, unless it exists. KafkaError when it cannot be created."""
        self.auto_create([name])
        if name not in self.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def auto_create_dead_letter_queue(self, name: str) -> None:
        """Create a share group's dead-letter queue (KIP-1191). KafkaError when it cannot be created."""
        from barnabas.broker.metadata.automatic_topics import dead_letter_queue

        self._create([dead_letter_queue(name)])

    def auto_create(self, names: Iterable[str]) -> None:
        """Create the topics that are missing. KafkaError of the first that cannot be created; the others are."""
        missing = [name for name in dict.fromkeys(names) if name not in self.image.topics]
        if missing:
            from barnabas.broker.metadata.automatic_topics import automatic_topic

            self._create([automatic_topic(name, self._config) for name in missing])

    def _create(self, topics: list[CreatableTopic]) -> None:
        from barnabas.wire.messages.topics import CreateTopicsRequest

        request = CreateTopicsRequest(topics=topics)
        response = self.commit(self.local.create_topics(request, self.topic_defaults()))
        for result in response.topics:
            if result.error_code:
                raise KafkaError(ErrorCode(result.error_code), result.error_message)

    def allocate_producer_ids(self) -> tuple[int, int]:
        """Allocate a block of producer ids that were never used: (first id, number of ids)."""
        records, block = allocate_producer_ids(self.image, self._config.node_id)
        self._write(records)
        return block.start, len(block)
